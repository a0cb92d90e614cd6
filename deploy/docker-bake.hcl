# The images of a release.
#
#   docker buildx bake -f deploy/docker-bake.hcl              builds both
#   docker buildx bake -f deploy/docker-bake.hcl --push       and pushes them; REPOSITORY=registry.example/outrider
#   docker buildx bake -f deploy/docker-bake.hcl --print      shows what would be built
#
# Several architectures in one image, and attestations, need a builder of the driver docker-container
# (`docker buildx create --use`). It needs no QEMU: what it is not itself is cross-compiled.

variable "REPOSITORY" {
  default = "outrider"
}

variable "VERSION" {
  default = "0.1.0"
}

# The commit: $(git rev-parse HEAD).
variable "REVISION" {
  default = "unknown"
}

group "default" {
  targets = ["image", "cuda"]
}

# Models on CPUs: one static binary on nothing.
target "image" {
  context    = "."
  dockerfile = "deploy/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["${REPOSITORY}:${VERSION}"]
  args = {
    VERSION  = VERSION
    REVISION = REVISION
  }
  # The scanner reads the list of crates that the binary carries.
  attest = ["type=sbom", "type=provenance,mode=max"]
}

# Models on NVIDIA's GPUs too, what helm/outrider/values-gpu.yaml names.
target "cuda" {
  inherits  = ["image"]
  platforms = ["linux/amd64"]
  tags      = ["${REPOSITORY}:${VERSION}-cuda"]
  args = {
    TOOLCHAIN  = "cuda"
    FEATURES   = "cuda"
    PACKAGES   = "ca-certificates g++"
    BASE_IMAGE = "nvidia/cuda:13.0.2-runtime-ubuntu24.04"
  }
}
