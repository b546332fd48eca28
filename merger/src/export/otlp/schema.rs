//! The messages of OTLP that are written here, with the field numbers of OpenTelemetry's `trace.proto`, and its JSON: names in camel case, ids in
//! hexadecimal digits, numbers of 64 bits as text.

use prost::{Message, Oneof};
use serde::{Serialize, Serializer};

/// What is sent to `/v1/traces`. Several after one another are one.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hexadecimal")]
    pub trace_id: Vec<u8>,
    /// 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hexadecimal")]
    pub span_id: Vec<u8>,
    /// 8 bytes, or none.
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "hexadecimal")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    /// A [`SpanKind`].
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "text")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "text")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    pub links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hexadecimal")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hexadecimal")]
    pub span_id: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    /// 1 ok, 2 error.
    #[prost(int32, tag = "3")]
    pub code: i32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(transparent)]
pub struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Value {
    #[prost(string, tag = "1")]
    StringValue(String),
    #[prost(int64, tag = "3")]
    IntValue(#[serde(serialize_with = "text")] i64),
}

impl KeyValue {
    pub fn text(key: &str, value: &str) -> Self {
        Self::new(key, Value::StringValue(value.to_owned()))
    }

    /// What OTLP's signed numbers cannot say is the largest of these.
    pub fn number(key: &str, value: u64) -> Self {
        Self::new(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn new(key: &str, value: Value) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }
}

fn hexadecimal<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    use std::fmt::Write as _;
    let digits = bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        // Writing into a text cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    to.serialize_str(&digits)
}

fn text<T: std::fmt::Display, S: Serializer>(number: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}
