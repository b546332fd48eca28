//! What tables and their columns mean, from the one definition of their rows: for pages, and within the files.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use trace::rows::{
    ColumnDescription, ConnectionRow, DependencyRow, EventRow, HostRow, JobRow, LimitRow, MessageRow, ProcessRow, Row,
    SpanRow, StepRow, TaskRow, TimerRow,
};

/// What a table means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDescription {
    /// Its file is `NAME.parquet`.
    pub name: &'static str,
    /// What a row is.
    pub meaning: String,
    /// Its columns.
    pub columns: Vec<ColumnDescription>,
}

impl TableDescription {
    /// Of a kind of rows.
    #[must_use]
    pub fn of<R: Row>() -> Self {
        Self { name: R::NAME, meaning: R::describe(), columns: R::describe_columns() }
    }

    /// As a section of a Markdown page.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut page =
            format!("## {}\n\n{}\n\n| column | type | null | meaning |\n|---|---|---|---|\n", self.name, self.meaning);
        for column in &self.columns {
            let words =
                column.words.iter().map(|(word, meaning)| format!("`{word}`: {}", meaning.trim_end_matches('.')));
            let words: Vec<String> = words.collect();
            let words = if words.is_empty() { String::new() } else { format!(" {}.", words.join("; ")) };
            let null = if column.nullable { "yes" } else { "" };
            let meaning = format!("{}{words}", column.meaning).replace('|', "\\|");
            let _ = writeln!(page, "| `{}` | {} | {null} | {meaning} |", column.name, column.type_name);
        }
        page
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let column = |column: &ColumnDescription| {
            let words: Map<String, Value> =
                column.words.iter().map(|(word, meaning)| ((*word).to_owned(), meaning.clone().into())).collect();
            json!({
                "name": column.name,
                "type": column.type_name,
                "nullable": column.nullable,
                "meaning": column.meaning,
                "words": words,
            })
        };
        let columns: Vec<Value> = self.columns.iter().map(column).collect();
        json!({ "name": self.name, "meaning": self.meaning, "columns": columns })
    }

    /// Keys and values for the footer of a Parquet file: the table's meaning, and a JSON object of its columns'.
    #[must_use]
    pub fn metadata(&self) -> Vec<(String, String)> {
        let columns: Map<String, Value> =
            self.columns.iter().map(|column| (column.name.to_owned(), column.meaning.clone().into())).collect();
        let columns = Value::Object(columns).to_string();
        vec![("hadoptic.table".to_owned(), self.meaning.clone()), ("hadoptic.columns".to_owned(), columns)]
    }
}

/// The tables of a trace.
#[must_use]
pub fn trace_tables() -> Vec<TableDescription> {
    vec![
        TableDescription::of::<HostRow>(),
        TableDescription::of::<ProcessRow>(),
        TableDescription::of::<ConnectionRow>(),
        TableDescription::of::<LimitRow>(),
        messages(),
        TableDescription::of::<SpanRow>(),
        TableDescription::of::<StepRow>(),
        TableDescription::of::<EventRow>(),
        TableDescription::of::<DependencyRow>(),
        TableDescription::of::<TimerRow>(),
        TableDescription::of::<TaskRow>(),
        TableDescription::of::<JobRow>(),
    ]
}

/// Messages, and who sent and got them: that stands in the connection, and is written beside them for those who query.
pub(crate) fn messages() -> TableDescription {
    let mut table = TableDescription::of::<MessageRow>();
    let process = |name, meaning: &str| ColumnDescription {
        name,
        type_name: "u32",
        nullable: true,
        meaning: meaning.to_owned(),
        words: Vec::new(),
    };
    table
        .columns
        .push(process("from_process", "The sender: the connection's client or server. Null = its owner is not known."));
    table.columns.push(process("to_process", "The receiver. Null = its owner is not known."));
    table
}
