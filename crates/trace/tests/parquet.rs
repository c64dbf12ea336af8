//! Parquet of other writers: every version of pages, encoding and compression that is read.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use refault_trace::{Format, Input, OpenOptions, Record, RecordSource, TraceError, open_input};
use std::io::Cursor;
use std::sync::Arc;

/// Among columns that are none of ours, in another order than ours.
const SCHEMA: &str = "
message other {
  OPTIONAL INT32 object;
  REQUIRED group nested { OPTIONAL INT64 page; REPEATED INT32 time_ns; }
  REQUIRED INT64 page;
  OPTIONAL INT64 op;
}";

const ROWS: i64 = 5000;

/// Pages that repeat, grow and jump.
fn page(row: i64) -> i64 {
    match row % 3 {
        0 => row,
        1 => 7,
        _ => row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) & i64::MAX >> 1,
    }
}

fn write(properties: WriterPropertiesBuilder) -> Vec<u8> {
    let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let objects = r#"[{"name": "a", "kind": "file"}, {"name": "b", "kind": "anon"}]"#;
    let pairs = vec![pair("refault.version", "1"), pair("other", "1"), pair("refault.objects", objects)];
    let properties = properties.set_key_value_metadata(Some(pairs)).set_data_page_row_count_limit(1000);
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build())).expect("writes");
    for half in [0..ROWS / 2, ROWS / 2..ROWS] {
        let count = (ROWS / 2) as usize;
        let wide = |value: fn(i64) -> i64| half.clone().map(value).collect::<Vec<_>>();
        let narrow: Vec<_> = half.clone().map(|row| (row / 100 % 2) as i32).collect();
        let (there, zeros) = (vec![1; count], vec![0; count]);
        let mut group = file.next_row_group().expect("writes");
        for place in 0..5 {
            let mut column = group.next_column().expect("writes").expect("there");
            let written = match place {
                0 => column.typed::<Int32Type>().write_batch(&narrow, Some(&there), None),
                1 => column.typed::<Int64Type>().write_batch(&[], Some(&zeros), None),
                2 => column.typed::<Int32Type>().write_batch(&[], Some(&zeros), Some(&zeros)),
                3 => column.typed::<Int64Type>().write_batch(&wide(page), None, None),
                _ => column.typed::<Int64Type>().write_batch(&wide(|row| row % 6), Some(&there), None),
            };
            written.expect("writes");
            column.close().expect("writes");
        }
        group.close().expect("writes");
    }
    file.close().expect("writes");
    bytes
}

fn read(bytes: Vec<u8>) -> Result<Vec<Record>, TraceError> {
    let input = Input::from_reader("t", Box::new(Cursor::new(bytes)))?;
    let mut source = open_input(input, &OpenOptions { format: Some(Format::Native), ..OpenOptions::default() })?;
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    while source.next_chunk(&mut chunk)? {
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

#[test]
fn every_way_to_write_pages() {
    let compressions = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for compression in compressions {
            for encoding in [None, Some(Encoding::PLAIN), Some(Encoding::DELTA_BINARY_PACKED)] {
                let mut properties =
                    WriterProperties::builder().set_writer_version(version).set_compression(compression);
                if let Some(encoding) = encoding {
                    properties = properties.set_dictionary_enabled(false).set_encoding(encoding);
                }
                let back = read(write(properties)).unwrap_or_else(|e| panic!("{compression} {encoding:?}: {e}"));
                assert_eq!(back.len(), ROWS as usize);
                for (row, record) in (0..).zip(&back) {
                    let op = u64::from(record.op.write);
                    assert_eq!(
                        (record.page, u64::from(record.object), op),
                        (page(row) as u64, row as u64 / 100 % 2, row as u64 % 2)
                    );
                    assert_eq!((record.pages, record.time_ns), (1, 0));
                }
            }
        }
    }
}

/// A trace of three rows with a column of groups of this declaration and of this type, some values
/// of which may be missing.
fn with_groups<T: parquet::data_type::DataType>(
    column: &str,
    values: &[T::T],
    there: Option<&[i16]>,
    names: &str,
) -> Vec<u8> {
    let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let objects = r#"[{"name": "a", "kind": "file"}]"#;
    let pairs = vec![pair("refault.version", "1"), pair("refault.memcgs", names), pair("refault.objects", objects)];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(pairs));
    let schema = format!("message trace {{ REQUIRED INT64 page; {column} }}");
    let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build())).expect("writes");
    let mut group = file.next_row_group().expect("writes");
    let mut pages = group.next_column().expect("writes").expect("there");
    pages.typed::<Int64Type>().write_batch(&[1, 2, 3], None, None).expect("writes");
    pages.close().expect("writes");
    let mut groups = group.next_column().expect("writes").expect("there");
    let repeats = column.starts_with("REPEATED").then_some(&[0i16, 0, 0][..]);
    groups.typed::<T>().write_batch(values, there, repeats).expect("writes");
    groups.close().expect("writes");
    group.close().expect("writes");
    file.close().expect("writes");
    bytes
}

#[test]
fn columns_of_groups_that_are_not_what_they_should_be() {
    let names = r#"["/", "/web"]"#;
    let good = with_groups::<Int64Type>("REQUIRED INT64 memcg;", &[0, 1, 1], None, names);
    assert_eq!(read(good).expect("reads").iter().map(|r| r.memcg).collect::<Vec<_>>(), [0, 1, 1]);
    let optional = with_groups::<Int32Type>("OPTIONAL INT32 memcg;", &[1, 0, 1], Some(&[1; 3]), names);
    assert_eq!(read(optional).expect("reads").len(), 3, "nothing is missing");
    let text = parquet::data_type::ByteArray::from("/web");
    let number = "column memcg is not of whole numbers";
    let narrow = |column: &str, names: &str| with_groups::<Int32Type>(column, &[0, 1, 1], None, names);
    let required = "REQUIRED INT32 memcg;";
    for (bytes, want) in [
        (
            with_groups::<ByteArrayType>(
                "REQUIRED BYTE_ARRAY memcg (UTF8);",
                &[text.clone(), text.clone(), text],
                None,
                names,
            ),
            number,
        ),
        (with_groups::<DoubleType>("REQUIRED DOUBLE memcg;", &[0.0, 1.0, 1.5], None, names), number),
        (with_groups::<BoolType>("REQUIRED BOOLEAN memcg;", &[true, false, true], None, names), number),
        (with_groups::<Int32Type>("REPEATED INT32 memcg;", &[0, 1, 1], Some(&[1; 3]), names), number),
        (
            with_groups::<Int32Type>("OPTIONAL INT32 memcg;", &[0, 1], Some(&[1, 0, 1]), names),
            "column memcg has missing values",
        ),
        (
            with_groups::<Int64Type>("REQUIRED INT64 memcg;", &[0, -1, 1], None, names),
            "memcg -1 is not a 32-bit number",
        ),
        (
            with_groups::<Int64Type>("REQUIRED INT64 memcg;", &[0, 1 << 32, 1], None, names),
            "memcg 4294967296 is not a 32-bit number",
        ),
        (narrow(required, "/web"), "refault.memcgs of the metadata is broken"),
        (narrow(required, r#"{"0": "/web"}"#), "refault.memcgs of the metadata is broken"),
        (narrow(required, "[0, 1]"), "refault.memcgs of the metadata is broken"),
        (narrow(required, r#"["/", "/a/../b"]"#), "refault.memcgs \"/a/../b\" is not the path of a group"),
        (narrow(required, r#"["/", "/a\nb"]"#), "is not the path of a group"),
        (narrow(required, &format!("[\"/\", \"/{}\"]", "x".repeat(5000))), "is not the path of a group"),
    ] {
        let error = read(bytes).map(|all| format!("{} rows", all.len())).unwrap_or_else(|e| e.to_string());
        assert!(error.contains(want) && error.lines().count() == 1, "want {want}, got {error}");
    }
}
