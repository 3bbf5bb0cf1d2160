//! Messages of the Arrow IPC format, each preceded by its length (`Message.fbs`, `File.fbs`).

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::DictionaryTracker;
use arrow_ipc::{
    Block, Buffer, DictionaryBatch, DictionaryBatchArgs, FieldNode, Footer, FooterArgs, Message, MessageArgs,
    MessageHeader, MetadataVersion, RecordBatch, RecordBatchArgs,
};
use arrow_schema::Schema;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

/// First bytes of a file; the first six of these also end it.
pub(super) const MAGIC: &[u8; 8] = b"ARROW1\0\0";

/// Number of bytes before a message: a marker and the length of the message's metadata.
const PREFIX: usize = 8;

/// End-of-stream marker, after the last message.
const END_OF_STREAM: [u8; PREFIX] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// How many rows and nulls a node has.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeCounts {
    /// Number of rows of the node.
    pub rows: u64,
    /// Number of nulls among these rows.
    pub nulls: u64,
}

/// A buffer's place in the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferExtent {
    /// First byte of the buffer.
    pub offset: u64,
    /// Length of the buffer in bytes.
    pub length: u64,
}

/// The metadata of a record batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch<'a> {
    /// Number of rows of the batch.
    pub rows: u64,
    /// Nodes in the order of the schema.
    pub nodes: &'a [NodeCounts],
    /// Buffers in the order of the schema.
    pub buffers: &'a [BufferExtent],
    /// Number of data buffers of each node of string views.
    pub data_buffers: &'a [i64],
    /// Length of the body in bytes.
    pub body: u64,
}

/// A message's place in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageBlock {
    /// First byte of the message.
    pub offset: u64,
    /// Number of bytes before the body.
    pub metadata: u32,
    /// Length of the body in bytes.
    pub body: u64,
}

/// Returns the magic and a schema message, padded so that the length of both is a multiple of `multiple`.
pub(super) fn schema(schema: &Schema, multiple: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let schema = encode_schema(&mut builder, schema).as_union_value();
    let message = finish(builder, MessageHeader::Schema, schema, 0);
    let mut out = MAGIC.to_vec();
    let length = up((MAGIC.len() + PREFIX + message.len()) as u64, multiple) - MAGIC.len() as u64;
    out.extend(framed(&message, length as usize));
    out
}

/// Returns the header of a record batch, padded to `length` bytes; longer if it needs more.
pub(super) fn batch(batch: &Batch<'_>, length: usize) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let header = encode_batch(&mut builder, batch).as_union_value();
    framed(&finish(builder, MessageHeader::RecordBatch, header, batch.body), length)
}

/// Returns the header of a dictionary batch, padded to a multiple of 64 bytes.
pub(super) fn dictionary(id: i64, batch: &Batch<'_>) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let data = Some(encode_batch(&mut builder, batch));
    let header = DictionaryBatch::create(&mut builder, &DictionaryBatchArgs { id, data, isDelta: false });
    let message = finish(builder, MessageHeader::DictionaryBatch, header.as_union_value(), batch.body);
    let length = up((PREFIX + message.len()) as u64, 64);
    framed(&message, length as usize)
}

/// Returns the bytes after the last batch: a footer with the places of all messages, the footer's length, the magic.
pub(super) fn tail(schema: &Schema, dictionaries: &[MessageBlock], batches: &[MessageBlock]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let [batches, dictionaries] = [batches, dictionaries].map(|places| {
        let blocks = places.iter().map(|at| Block::new(signed(at.offset), at.metadata as i32, signed(at.body)));
        Some(builder.create_vector(&blocks.collect::<Vec<_>>()))
    });
    let schema = Some(encode_schema(&mut builder, schema));
    let footer = FooterArgs {
        version: MetadataVersion::V5,
        schema,
        dictionaries,
        recordBatches: batches,
        custom_metadata: None,
    };
    let footer = Footer::create(&mut builder, &footer);
    builder.finish(footer, None);
    let footer = builder.finished_data();
    let mut out = END_OF_STREAM.to_vec();
    out.extend_from_slice(footer);
    out.extend((footer.len() as u32).to_le_bytes());
    out.extend_from_slice(&MAGIC[..6]);
    out
}

/// Rounds up to a multiple of a power of two.
pub(super) fn up(bytes: u64, multiple: u64) -> u64 {
    bytes.next_multiple_of(multiple)
}

/// Converts a number that layout code has checked against the range of `i64`.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn encode_schema<'a>(builder: &mut FlatBufferBuilder<'a>, schema: &Schema) -> WIPOffset<arrow_ipc::Schema<'a>> {
    // The tracker numbers dictionaries in the order of the fields, from 0.
    let mut tracker = DictionaryTracker::new(false);
    IpcSchemaEncoder::new().with_dictionary_tracker(&mut tracker).schema_to_fb_offset(builder, schema)
}

fn encode_batch<'a>(builder: &mut FlatBufferBuilder<'a>, batch: &Batch<'_>) -> WIPOffset<RecordBatch<'a>> {
    let nodes: Vec<FieldNode> =
        batch.nodes.iter().map(|node| FieldNode::new(signed(node.rows), signed(node.nulls))).collect();
    let buffers: Vec<Buffer> =
        batch.buffers.iter().map(|buffer| Buffer::new(signed(buffer.offset), signed(buffer.length))).collect();
    let data_buffers = (!batch.data_buffers.is_empty()).then(|| builder.create_vector(batch.data_buffers));
    let buffers = Some(builder.create_vector(&buffers));
    let nodes = Some(builder.create_vector(&nodes));
    let batch = RecordBatchArgs {
        length: signed(batch.rows),
        nodes,
        buffers,
        compression: None,
        variadicBufferCounts: data_buffers,
    };
    RecordBatch::create(builder, &batch)
}

fn finish(
    mut builder: FlatBufferBuilder<'_>,
    header_type: MessageHeader,
    header: WIPOffset<UnionWIPOffset>,
    body: u64,
) -> Vec<u8> {
    let message = MessageArgs {
        version: MetadataVersion::V5,
        header_type,
        header: Some(header),
        bodyLength: signed(body),
        custom_metadata: None,
    };
    let message = Message::create(&mut builder, &message);
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

/// Returns a message preceded by marker and length, padded to `length` bytes, at least to a multiple of 8.
fn framed(message: &[u8], length: usize) -> Vec<u8> {
    let length = length.max((PREFIX + message.len()).next_multiple_of(8));
    let mut out = vec![0xff; 4];
    out.extend(((length - PREFIX) as u32).to_le_bytes());
    out.extend_from_slice(message);
    out.resize(length, 0);
    out
}
