//! Rows on their way to the pages of a Parquet file, column by column.

use std::hash::BuildHasher as _;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use polars::prelude::PolarsError;
use polars_arrow::array::{
    Array, DictionaryArray, MutableArray as _, MutableBinaryViewArray, MutableBooleanArray, MutablePrimitiveArray,
    PrimitiveArray,
};
use polars_arrow::datatypes::{ArrowDataType, IntegerType};
use polars_arrow::types::NativeType;
use trace::rows::{Column, TextCells};

/// Text of so few cells is written as a dictionary and their numbers in it, whatever they are.
const MIN_PLAIN_CELLS: usize = 128;

/// A row group to be. Its rows come in any number of pieces.
pub(crate) struct RowGroup {
    pub height: usize,
    /// Of each column.
    pub cells: Vec<GroupCells>,
}

impl RowGroup {
    /// Without rows, for columns of these types.
    pub fn of(columns: &[Column]) -> Self {
        Self { height: 0, cells: columns.iter().map(GroupCells::of).collect() }
    }

    /// Appends these rows. Says whether all columns have them, and are of the same types as its own.
    pub fn append(&mut self, columns: &[Column], rows: Range<usize>) -> bool {
        self.height += rows.len();
        let are_all = columns.len() == self.cells.len();
        are_all && self.cells.iter_mut().zip(columns).all(|(cells, column)| cells.append(column, rows.clone()))
    }
}

/// Cells of a column of a row group.
pub(crate) enum GroupCells {
    Bool(MutableBooleanArray),
    U32(MutablePrimitiveArray<u32>),
    /// 64 bits are signed in the file, for differences of times must be able to fall below zero. A number beyond `i64::MAX` (the block
    /// ids of Hadoop 1.x are negative numbers) becomes the negative number of the same bits.
    I64(MutablePrimitiveArray<i64>),
    F64(MutablePrimitiveArray<f64>),
    Text(TextKeys),
}

impl GroupCells {
    /// None yet, of a column's type.
    fn of(column: &Column) -> Self {
        match column {
            Column::Bool(_) => Self::Bool(MutableBooleanArray::new()),
            Column::U32(_) => Self::U32(MutablePrimitiveArray::new()),
            Column::U64(_) | Column::I64(_) => Self::I64(MutablePrimitiveArray::new()),
            Column::F64(_) => Self::F64(MutablePrimitiveArray::new()),
            Column::Text(_) => Self::Text(TextKeys::default()),
        }
    }

    /// The type of their array, as the file's schema has it.
    pub fn data_type(&self) -> ArrowDataType {
        match self {
            Self::Bool(_) => ArrowDataType::Boolean,
            Self::U32(_) => ArrowDataType::UInt32,
            Self::I64(_) => ArrowDataType::Int64,
            Self::F64(_) => ArrowDataType::Float64,
            Self::Text(_) => ArrowDataType::Utf8View,
        }
    }

    fn append(&mut self, column: &Column, rows: Range<usize>) -> bool {
        match (self, column) {
            (Self::Bool(cells), Column::Bool(more)) => {
                let Some(more) = more.get(rows) else { return false };
                more.iter().for_each(|cell| cells.push(*cell));
            }
            (Self::U32(cells), Column::U32(more)) => return push_all(cells, more.get(rows), |cell| cell),
            (Self::I64(cells), Column::U64(more)) => return push_all(cells, more.get(rows), u64::cast_signed),
            (Self::I64(cells), Column::I64(more)) => return push_all(cells, more.get(rows), |cell| cell),
            (Self::F64(cells), Column::F64(more)) => return push_all(cells, more.get(rows), |cell| cell),
            (Self::Text(cells), Column::Text(more)) => {
                for row in rows {
                    let Some(cell) = more.get(row) else { return false };
                    cells.push(cell);
                }
            }
            _ => return false,
        }
        true
    }

    /// All cells that came.
    ///
    /// # Errors
    /// None that is known: numbers in a dictionary are of its words.
    pub fn into_array(self) -> Result<Box<dyn Array>, PolarsError> {
        Ok(match self {
            Self::Bool(mut cells) => cells.as_box(),
            Self::U32(cells) => PrimitiveArray::from(cells).boxed(),
            Self::I64(cells) => PrimitiveArray::from(cells).boxed(),
            Self::F64(cells) => PrimitiveArray::from(cells).boxed(),
            Self::Text(cells) => cells.into_array()?,
        })
    }
}

fn push_all<F: Copy, T: NativeType>(
    cells: &mut MutablePrimitiveArray<T>,
    more: Option<&[Option<F>]>,
    value: impl Fn(F) -> T,
) -> bool {
    let Some(more) = more else { return false };
    cells.reserve(more.len());
    more.iter().for_each(|cell| cells.push(cell.map(&value)));
    true
}

/// Cells of text: most are few different words.
#[derive(Default)]
pub(crate) struct TextKeys {
    /// Of each cell the place of its word.
    keys: MutablePrimitiveArray<u32>,
    /// In the order in which they came first.
    words: TextCells,
    places: HashTable<u32>,
    hasher: RandomState,
}

impl TextKeys {
    fn push(&mut self, cell: Option<&str>) {
        let Self { keys, words, places, hasher } = self;
        let key = cell.map(|word| {
            let word_at = |place: &u32| words.get(*place as usize).flatten().unwrap_or_default();
            let hash = |word: &str| hasher.hash_one(word);
            match places.entry(hash(word), |place| word_at(place) == word, |place| hash(word_at(place))) {
                Entry::Occupied(place) => *place.get(),
                Entry::Vacant(free) => {
                    let place = free.insert(words.len() as u32);
                    words.push(Some(word));
                    *place.get()
                }
            }
        });
        keys.push(key);
    }

    /// As a dictionary and numbers in it, unless most words are there but once.
    fn into_array(self) -> Result<Box<dyn Array>, PolarsError> {
        let Self { keys, words, .. } = self;
        let (cells, different) = (keys.len(), words.len());
        let keys = PrimitiveArray::from(keys);
        if cells > MIN_PLAIN_CELLS && different as u64 * 4 > cells as u64 * 3 {
            let word = |place: Option<&u32>| place.and_then(|place| words.get(*place as usize).flatten());
            let mut plain = MutableBinaryViewArray::<str>::with_capacity(cells);
            keys.iter().for_each(|place| plain.push(word(place)));
            return Ok(plain.as_box());
        }
        let mut values = MutableBinaryViewArray::<str>::with_capacity(different);
        words.iter().flatten().for_each(|word| values.push_value(word));
        let data_type = ArrowDataType::Dictionary(IntegerType::UInt32, Box::new(ArrowDataType::Utf8View), false);
        Ok(DictionaryArray::try_new(data_type, keys, values.as_box())?.boxed())
    }
}
