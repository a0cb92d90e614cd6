# Runs the product with its built-in models.
run *arguments:
    cargo run -- {{arguments}}

# Runs every test.
test *arguments:
    cargo test --workspace {{arguments}}

# Checks formatting and lints.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Builds the API documentation, broken links being errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Does everything that a change must pass.
ci:
    .ci/run

# Runs the tests with larger sweeps and longer soaks, optimised.
nightly:
    OUTRIDER_SWEEP=full cargo test --workspace --release

# Checks licences, advisories and banned crates; needs cargo-deny.
deny:
    cargo deny --all-features check

# Checks the Helm chart and renders it; needs helm.
chart:
    helm lint --strict helm/outrider
    helm template --kube-version 1.34 outrider helm/outrider > /dev/null
