//! Compiles the protocol without `protoc`.

use std::path::PathBuf;

const SERIALIZE: &str = "#[derive(serde::Serialize)]";

/// For what comes with every token.
const NO_ZERO: &str = r#"#[serde(skip_serializing_if = "crate::json::is_default")]"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files = [
        "common",
        "session",
        "drafter",
        "verifier",
        "coordinator",
        "recording",
    ]
    .map(|name| root.join(format!("outrider/v1/{name}.proto")));
    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_source_info(true).include_imports(true);
    compiler.open_files(&files)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(
        out.join("outrider.v1.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    let mut streaming = Vec::new();
    for file in compiler.file_descriptor_set().file {
        for service in &file.service {
            let methods = service.method.iter();
            let methods = methods.filter(|method| method.client_streaming());
            let service = format!("/{}.{}", file.package(), service.name());
            streaming.extend(methods.map(|method| format!("{service}/{}", method.name())));
        }
    }
    std::fs::write(out.join("client_streaming.rs"), format!("&{streaming:?}"))?;
    tonic_prost_build::configure()
        // Whole rows are large, and pass through the coordinator: they are shared, not copied.
        .bytes(".outrider.v1.DenseDistribution.row")
        // The command line prints them as JSON.
        .type_attribute(".outrider.v1.SpeculationStatistics", SERIALIZE)
        .type_attribute(".outrider.v1.Fallback", SERIALIZE)
        .type_attribute(".outrider.v1.RequestTiming", SERIALIZE)
        .type_attribute(".outrider.v1.TopLogprob", SERIALIZE)
        // The HTTP front tells them.
        .type_attribute(".outrider.v1.RoundReport", SERIALIZE)
        .field_attribute(".outrider.v1.RoundReport.distributions", "#[serde(skip)]")
        .field_attribute(".outrider.v1.RoundReport.drafter", NO_ZERO)
        .field_attribute(".outrider.v1.RoundReport.verifier", NO_ZERO)
        .field_attribute(".outrider.v1.RoundReport.accepted_by", NO_ZERO)
        .field_attribute(".outrider.v1.RoundReport.fallbacks", NO_ZERO)
        .type_attribute(".outrider.v1.AcceptedDrafts", SERIALIZE)
        .type_attribute(".outrider.v1.Timing", SERIALIZE)
        .field_attribute(".outrider.v1.Timing", NO_ZERO)
        .type_attribute(".outrider.v1.ListMethodsResponse", SERIALIZE)
        .type_attribute(".outrider.v1.MethodDescription", SERIALIZE)
        .type_attribute(".outrider.v1.ParameterDescription", SERIALIZE)
        .type_attribute(".outrider.v1.RuleDescription", SERIALIZE)
        .type_attribute(".outrider.v1.AxisDescription", SERIALIZE)
        .type_attribute(".outrider.v1.AxisValue", SERIALIZE)
        .codec_path("crate::bounds::BoundedCodec")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
