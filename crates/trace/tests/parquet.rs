//! Parquet of other writers: every version of pages, encoding and compression that is read.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{Int32Type, Int64Type};
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
