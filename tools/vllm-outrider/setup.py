"""Adds the messages and the client of the drafter's protocol, made of the repository's own .proto files."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROTO = Path(__file__).resolve().parents[2] / "proto"
FILES = ("outrider/v1/common.proto", "outrider/v1/session.proto", "outrider/v1/drafter.proto")


class BuildWithProtocol(build_py):
    def run(self):
        super().run()
        from grpc_tools import protoc

        Path(self.build_lib).mkdir(parents=True, exist_ok=True)
        out = [f"--python_out={self.build_lib}", f"--grpc_python_out={self.build_lib}"]
        if protoc.main(["protoc", f"-I{PROTO}", *out, *FILES]) != 0:
            raise SystemExit(f"vllm-outrider: no protocol could be made of {PROTO}")


setup(cmdclass={"build_py": BuildWithProtocol})
