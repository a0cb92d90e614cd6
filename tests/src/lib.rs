//! Nothing: the tests beside it are this package.
