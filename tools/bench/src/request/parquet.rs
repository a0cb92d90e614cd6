//! Rows of Parquet files, as the hub passes data sets on.

use std::fs::File;
use std::path::Path;

use anyhow::ensure;
use net::bounded::MAX_LIST_BYTES;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

/// Returns the rows of `file` as JSON objects, by the names of its columns.
///
/// # Errors
/// If it cannot be opened, is no Parquet, is compressed by anything but Snappy, or holds more than 64 MiB.
pub(super) fn rows(file: &Path) -> anyhow::Result<Vec<Value>> {
    let reader = SerializedFileReader::new(File::open(file)?)?;
    let groups = reader.metadata().row_groups().iter();
    let bytes: u64 = groups
        .map(|group| u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX))
        .fold(0, u64::saturating_add);
    ensure!(
        bytes <= MAX_LIST_BYTES,
        "it holds {bytes} bytes, expected at most {MAX_LIST_BYTES}; take a part of it"
    );
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None)? {
        rows.push(row?.to_json_value());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outrider::prompts::{FieldNames, Form};
    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::super::input::source;

    /// Writes a file with two columns of texts.
    fn write(path: &std::path::Path, columns: [(&str, &[&str]); 2], compression: Compression) {
        let [(first, _), (second, _)] = columns;
        let schema = format!(
            "message rows {{ required binary {first} (UTF8); required binary {second} (UTF8); }}"
        );
        let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
        let properties = WriterProperties::builder().set_compression(compression);
        let file = std::fs::File::create(path).expect("a file");
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()));
        let mut writer = writer.expect("a writer");
        let mut group = writer.next_row_group().expect("a group");
        for (_, texts) in columns {
            let values: Vec<_> = texts.iter().map(|&text| ByteArray::from(text)).collect();
            let mut column = group.next_column().expect("a column").expect("another");
            let written = column
                .typed::<ByteArrayType>()
                .write_batch(&values, None, None);
            written.expect("written");
            column.close().expect("closed");
        }
        group.close().expect("closed");
        writer.close().expect("closed");
    }

    #[test]
    fn rows_are_recognised_by_their_columns() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("train.parquet");
        let columns = [
            ("question", &["1 + 1?", "2 + 2?"][..]),
            ("answer", &["#### 2", "#### 4"]),
        ];
        write(&path, columns, Compression::SNAPPY);
        let source_of = || source("--task", &path);
        let examples = source_of().and_then(|source| source.examples(&FieldNames::default()));
        let examples = examples.expect("examples");
        assert_eq!((examples[1].form, examples.len()), (Form::Gsm8k, 2));
        assert_eq!(examples[1].references, ["#### 4"]);
        write(&path, [("a", &["x"]), ("b", &["y"])], Compression::SNAPPY);
        let error = source_of().and_then(|source| source.examples(&FieldNames::default()));
        let error = error.expect_err("refused").to_string();
        assert!(error.contains("item 1: its fields are 'a', 'b'"), "{error}");
        std::fs::write(&path, "no parquet").expect("written");
        let error = format!("{:#}", source_of().expect_err("refused"));
        let said = format!("--task: {} cannot be read: ", path.display());
        assert!(error.starts_with(&said), "{error}");
    }
}
