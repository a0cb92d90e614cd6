# Runs the product with its built-in models.
run *arguments:
    cargo run -- {{arguments}}

# Runs every test of the product.
test *arguments:
    cargo test {{arguments}}

# Runs the laboratory's tests.
test-bench *arguments:
    cargo test -p outrider-bench {{arguments}}

# Checks formatting and lints.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Builds the API documentation, broken links being errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Does what every change must pass.
ci:
    .ci/run

# Does the long checks beside it.
full:
    .ci/full

# Runs the three services as three hosts with bad links between them; needs root, Linux and Python.
network:
    tests/network/run

# Runs deploy/compose.yaml in containers it builds, kills drafters; needs Docker, or root on Debian.
containers *arguments:
    tests/containers/run {{arguments}}

# Installs the chart on a Kubernetes of one node and breaks things; needs root on Debian, Go and Python.
cluster *arguments:
    tests/cluster/run {{arguments}}

# Runs clients that people have against a server, all or those named; needs Python, npm and their registries.
clients *arguments:
    tests/clients/run {{arguments}}

# Has Prometheus check rules and dashboards on running services; needs Prometheus and Python.
monitoring *arguments:
    tests/monitoring/run {{arguments}}

# Fuzzes every target, or those named, for so many seconds each; needs a C++ compiler.
fuzz *arguments:
    fuzz/run {{arguments}}

# Checks licences, advisories and banned crates with cargo-deny, which .ci/deny finds or installs.
deny:
    "$(.ci/deny)" --all-features check

# Checks the Helm chart; needs helm, kubeconform and python3, which tests/helm/tools installs.
chart *arguments:
    tests/helm/run {{arguments}}
