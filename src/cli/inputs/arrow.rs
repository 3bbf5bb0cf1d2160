//! Arrow IPC, as a file or as a stream.

use std::io::{BufReader, Read};

use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::{Batches, Input, Source};

/// Bytes to read ahead of a stream.
const AHEAD: usize = 1 << 20;

/// An Arrow IPC file or stream.
pub(super) struct Ipc {
    source: Source,
    schema: SchemaRef,
    is_file: bool,
}

impl Ipc {
    pub fn open(source: Source) -> Result<Self, ArrowError> {
        let mut begin = [0; 6];
        let is_file = source.reader()?.read_exact(&mut begin).is_ok() && begin == *b"ARROW1";
        let schema = if is_file {
            FileReader::try_new(source.reader()?, None)?.schema()
        } else {
            StreamReader::try_new(BufReader::new(source.reader()?), None)?.schema()
        };
        Ok(Self { source, schema, is_file })
    }
}

impl Input for Ipc {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn scan(&self, columns: &[usize]) -> Result<Batches, ArrowError> {
        let columns = columns.to_vec();
        let file = BufReader::with_capacity(AHEAD, self.source.reader()?);
        // Projects after reading, since dictionaries are found by the positions of all fields.
        Ok(if self.is_file {
            Box::new(FileReader::try_new(file, None)?.map(move |batch| batch?.project(&columns)))
        } else {
            Box::new(StreamReader::try_new(file, None)?.map(move |batch| batch?.project(&columns)))
        })
    }
}
