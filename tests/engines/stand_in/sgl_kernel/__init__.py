"""In place of SGLang's kernels, of which no index has a build for CPUs: every name can be imported, none can be called.

With torch's own attention and sampling SGLang serves a small dense model without them.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_args, **_kwargs):
        raise NotImplementedError(f"sgl_kernel.{name}: this is a stand-in without kernels")

    return missing
