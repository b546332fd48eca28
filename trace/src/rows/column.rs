//! Rows to columns and back, without a table library: what `trace-tables` turns into Parquet.

use std::fmt;

/// A column of a table; each cell may be null.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Booleans.
    Bool(Vec<Option<bool>>),
    /// Unsigned, 32 bits: ids, counts.
    U32(Vec<Option<u32>>),
    /// Unsigned, 64 bits: bytes, nanoseconds since the epoch.
    U64(Vec<Option<u64>>),
    /// Signed, 64 bits: offsets, delays.
    I64(Vec<Option<i64>>),
    /// Floating point: shares.
    F64(Vec<Option<f64>>),
    /// Text.
    Text(TextCells),
}

/// The cells of a column of text, one behind the other: tables have millions, most of them few different words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextCells {
    bytes: String,
    /// Of each cell: where it ends in `bytes`, and whether it is not null.
    ends: Vec<(usize, bool)>,
}

impl TextCells {
    /// Appends a cell.
    pub fn push(&mut self, cell: Option<&str>) {
        self.bytes.push_str(cell.unwrap_or_default());
        self.ends.push((self.bytes.len(), cell.is_some()));
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The cell in row `row`: `None` if there is no such row, `Some(None)` if it is null.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<Option<&str>> {
        let (end, is_there) = *self.ends.get(row)?;
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before].0);
        Some(is_there.then(|| &self.bytes[begin..end]))
    }

    /// All cells in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        (0..self.ends.len()).map(|row| self.get(row).flatten())
    }
}

impl<T: AsRef<str>> FromIterator<Option<T>> for TextCells {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(cells: I) -> Self {
        let mut text = Self::default();
        for cell in cells {
            text.push(cell.as_ref().map(AsRef::as_ref));
        }
        text
    }
}

/// A value that can stand in a column.
pub trait Cell: Sized {
    /// The words that can stand there, and what each means; empty = any.
    #[must_use]
    fn words() -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// An empty column for such values.
    fn empty() -> Column;
    /// Appends this value; a column of another type is left alone.
    fn push(&self, column: &mut Column);
    /// The value in row `row`, if it is there and has this type and meaning.
    fn get(column: &Column, row: usize) -> Option<Self>;
}

macro_rules! cell {
    ($type:ty, $variant:ident) => {
        impl Cell for $type {
            fn empty() -> Column {
                Column::$variant(Vec::new())
            }
            fn push(&self, column: &mut Column) {
                if let Column::$variant(cells) = column {
                    cells.push(Some(self.clone()));
                }
            }
            fn get(column: &Column, row: usize) -> Option<Self> {
                match column {
                    Column::$variant(cells) => cells.get(row).cloned().flatten(),
                    _ => None,
                }
            }
        }
        impl Cell for Option<$type> {
            fn empty() -> Column {
                Column::$variant(Vec::new())
            }
            fn push(&self, column: &mut Column) {
                if let Column::$variant(cells) = column {
                    cells.push(self.clone());
                }
            }
            fn get(column: &Column, row: usize) -> Option<Self> {
                match column {
                    Column::$variant(cells) => cells.get(row).cloned(),
                    _ => None,
                }
            }
        }
    };
}

cell!(bool, Bool);
cell!(u32, U32);
cell!(u64, U64);
cell!(i64, I64);
cell!(f64, F64);

impl Cell for String {
    fn empty() -> Column {
        Column::Text(TextCells::default())
    }
    fn push(&self, column: &mut Column) {
        column.push_text(Some(self));
    }
    fn get(column: &Column, row: usize) -> Option<Self> {
        column.text(row)?.map(str::to_owned)
    }
}

impl Cell for Option<String> {
    fn empty() -> Column {
        String::empty()
    }
    fn push(&self, column: &mut Column) {
        column.push_text(self.as_deref());
    }
    fn get(column: &Column, row: usize) -> Option<Self> {
        column.text(row).map(|cell| cell.map(str::to_owned))
    }
}

macro_rules! id_cell {
    ($($id:ident),*) => { $(
        impl Cell for crate::ids::$id {
            fn empty() -> Column {
                u32::empty()
            }
            fn push(&self, column: &mut Column) {
                self.0.push(column);
            }
            fn get(column: &Column, row: usize) -> Option<Self> {
                u32::get(column, row).map(Self)
            }
        }
        impl Cell for Option<crate::ids::$id> {
            fn empty() -> Column {
                u32::empty()
            }
            fn push(&self, column: &mut Column) {
                self.map(|id| id.0).push(column);
            }
            fn get(column: &Column, row: usize) -> Option<Self> {
                Option::<u32>::get(column, row).map(|id| id.map(crate::ids::$id))
            }
        }
    )* };
}

id_cell!(HostId, ProcessId, ConnectionId, MessageId, EventId, TimerId, TaskId, JobId);

/// A row of a table.
pub trait Row: Sized {
    /// The table's name: `NAME.parquet`.
    const NAME: &'static str;
    /// Names of the columns, in their order.
    const COLUMNS: &'static [&'static str];
    /// What a row is.
    fn describe() -> String;
    /// What each column is, in the order of [`Row::COLUMNS`].
    fn describe_columns() -> Vec<ColumnDescription>;
    /// Turns rows into columns, in the order of [`Row::COLUMNS`].
    fn to_columns(rows: &[Self]) -> Vec<Column>;
    /// Appends the row to columns in the order of [`Row::COLUMNS`]; more columns may follow.
    fn append_to(&self, columns: &mut [Column]);
    /// Empty columns, which tell the types.
    fn empty_columns() -> Vec<Column> {
        Self::to_columns(&[])
    }
    /// Turns columns, in the order of [`Row::COLUMNS`], into rows.
    ///
    /// # Errors
    /// If a column is missing, or a cell has no meaning.
    fn from_columns(columns: &[Column], rows: usize) -> Result<Vec<Self>, RowError>;
}

/// What a column is, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Name.
    pub name: &'static str,
    /// "bool", "u32", "i64", "f64" or "string", as in the file.
    pub type_name: &'static str,
    /// Whether a cell may be null.
    pub nullable: bool,
    /// What it means.
    pub meaning: String,
    /// The words that can stand there, and what each means; empty = any.
    pub words: Vec<(&'static str, String)>,
}

impl Column {
    /// A column of this type with so many nulls.
    #[must_use]
    pub fn nulls(&self, rows: usize) -> Self {
        match self {
            Self::Bool(_) => Self::Bool(vec![None; rows]),
            Self::U32(_) => Self::U32(vec![None; rows]),
            Self::U64(_) => Self::U64(vec![None; rows]),
            Self::I64(_) => Self::I64(vec![None; rows]),
            Self::F64(_) => Self::F64(vec![None; rows]),
            Self::Text(_) => Self::Text((0..rows).map(|_| None::<&str>).collect()),
        }
    }

    /// How many cells it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(cells) => cells.len(),
            Self::U32(cells) => cells.len(),
            Self::U64(cells) => cells.len(),
            Self::I64(cells) => cells.len(),
            Self::F64(cells) => cells.len(),
            Self::Text(cells) => cells.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a cell of text; a column of another type is left alone.
    pub fn push_text(&mut self, cell: Option<&str>) {
        if let Self::Text(cells) = self {
            cells.push(cell);
        }
    }

    /// The text in row `row`: `None` if there is no such row or the column is of another type, `Some(None)` if it is null.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<Option<&str>> {
        match self {
            Self::Text(cells) => cells.get(row),
            _ => None,
        }
    }

    /// Its type, as in the file: 64 bits are signed there.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::U32(_) => "u32",
            Self::U64(_) | Self::I64(_) => "i64",
            Self::F64(_) => "f64",
            Self::Text(_) => "string",
        }
    }
}

/// The text of a doc comment in one line.
#[must_use]
pub fn plain_text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A cell that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// Table.
    pub table: &'static str,
    /// Column.
    pub column: &'static str,
    /// Row, from 0.
    pub row: usize,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {}: column {} is missing or has no meaning in row {}", self.table, self.column, self.row)
    }
}

impl std::error::Error for RowError {}

/// Defines a row's struct, `NAME in "TABLE" { FIELD: TYPE, }`, and its columns. Each type is a [`Cell`](crate::rows::Cell).
#[macro_export]
macro_rules! row {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($derive:path)])?
        $name:ident in $table:literal {
            $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq $(, $derive)?)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
        }

        impl $crate::rows::Row for $name {
            const NAME: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn describe() -> String {
                $crate::rows::plain_text(&[$($doc),*])
            }

            fn describe_columns() -> Vec<$crate::rows::ColumnDescription> {
                vec![$($crate::rows::ColumnDescription {
                    name: stringify!($field),
                    type_name: <$type as $crate::rows::Cell>::empty().type_name(),
                    nullable: stringify!($type).starts_with("Option"),
                    meaning: $crate::rows::plain_text(&[$($field_doc),*]),
                    words: <$type as $crate::rows::Cell>::words(),
                }),*]
            }

            fn to_columns(rows: &[Self]) -> Vec<$crate::rows::Column> {
                vec![$({
                    let mut column = <$type as $crate::rows::Cell>::empty();
                    for row in rows {
                        $crate::rows::Cell::push(&row.$field, &mut column);
                    }
                    column
                }),*]
            }

            fn append_to(&self, columns: &mut [$crate::rows::Column]) {
                let mut columns = columns.iter_mut();
                $(if let Some(column) = columns.next() {
                    $crate::rows::Cell::push(&self.$field, column);
                })*
            }

            fn from_columns(
                columns: &[$crate::rows::Column],
                rows: usize,
            ) -> Result<Vec<Self>, $crate::rows::RowError> {
                (0..rows)
                    .map(|row| {
                        let mut columns = columns.iter();
                        Ok(Self {
                            $($field: columns
                                .next()
                                .and_then(|column| <$type as $crate::rows::Cell>::get(column, row))
                                .ok_or($crate::rows::RowError {
                                    table: $table,
                                    column: stringify!($field),
                                    row,
                                })?,)*
                        })
                    })
                    .collect()
            }
        }
    };
}

/// Defines an enum that stands in tables by its name.
macro_rules! named {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[doc = $variant_doc:literal])* $variant:ident = $text:literal, )* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[doc = $variant_doc])* $variant, )* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in tables.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// By its name in tables.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::rows::Cell for $name {
            fn words() -> Vec<(&'static str, String)> {
                vec![$(($text, $crate::rows::plain_text(&[$($variant_doc),*]))),*]
            }
            fn empty() -> $crate::rows::Column {
                String::empty()
            }
            fn push(&self, column: &mut $crate::rows::Column) {
                column.push_text(Some(self.as_str()));
            }
            fn get(column: &$crate::rows::Column, row: usize) -> Option<Self> {
                column.text(row)?.and_then(Self::from_name)
            }
        }

        impl $crate::rows::Cell for Option<$name> {
            fn words() -> Vec<(&'static str, String)> {
                <$name as $crate::rows::Cell>::words()
            }
            fn empty() -> $crate::rows::Column {
                String::empty()
            }
            fn push(&self, column: &mut $crate::rows::Column) {
                column.push_text(self.map(|value| value.as_str()));
            }
            fn get(column: &$crate::rows::Column, row: usize) -> Option<Self> {
                match column.text(row)? {
                    None => Some(None),
                    Some(name) => $name::from_name(name).map(Some),
                }
            }
        }
    };
}

pub(crate) use named;
pub(crate) use row;
