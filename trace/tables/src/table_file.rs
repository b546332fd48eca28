//! A Parquet file that is written row group by row group.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use polars::prelude::{PlSmallStr, PolarsError};
use polars_arrow::array::Array;
use polars_arrow::datatypes::{ArrowSchema, Field};
use polars_core::runtime::RAYON;
use polars_parquet::parquet::metadata::KeyValue;
use polars_parquet::write::{
    CompressedPage, CompressionOptions, DynIter, DynStreamingIterator, Encoding, FileWriter, ParquetType,
    StatisticsOptions, Version, WriteOptions, array_to_columns, compress, fallible_streaming_iterator,
    get_dtype_encoding,
};
use rayon::prelude::*;
use trace::rows::Column;

use crate::error::TableError;
use crate::row_group::{GroupCells, RowGroup};

/// Bytes that are written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// Pages are packed with zstd at its default level.
const OPTIONS: WriteOptions = WriteOptions {
    statistics: StatisticsOptions {
        min_value: true,
        max_value: true,
        distinct_count: false,
        null_count: true,
        binary_statistics_truncate_length: None,
    },
    version: Version::V1,
    compression: CompressionOptions::Zstd(None),
    data_page_size: None,
};

/// A file, of which row groups may still come.
pub(crate) struct TableFile {
    path: PathBuf,
    writer: FileWriter<BufWriter<File>>,
    /// Of each column how it is written.
    encodings: Vec<Vec<Encoding>>,
}

impl TableFile {
    /// Makes a file for columns with these names and of the types of these.
    ///
    /// # Errors
    /// If it cannot be made, or two columns have one name.
    pub fn create(path: &Path, names: &[impl AsRef<str>], columns: &[Column]) -> Result<Self, TableError> {
        let mut schema = ArrowSchema::default();
        for (name, cells) in names.iter().zip(RowGroup::of(columns).cells) {
            let name = PlSmallStr::from(name.as_ref());
            let field = Field::new(name.clone(), cells.data_type(), true);
            schema.try_insert(name, field).map_err(parquet(path))?;
        }
        let encodings = schema.iter_values().map(|field| get_dtype_encoding(&field.dtype)).collect();
        let file = replaced(path).map_err(|source| TableError::Io { path: path.into(), source })?;
        // Pages, and what stands around them, are written one by one.
        let writer = FileWriter::try_new(BufWriter::with_capacity(WRITTEN_AT_ONCE, file), schema, OPTIONS);
        Ok(Self { path: path.into(), writer: writer.map_err(parquet(path))?, encodings })
    }

    /// Writes all row groups, each while the next one is made, and ends the file. Its footer has these pairs.
    ///
    /// # Errors
    /// If one cannot be made, or the file cannot be written.
    pub fn write_all(
        mut self,
        groups: impl Iterator<Item = Result<RowGroup, TableError>>,
        metadata: Vec<(String, String)>,
    ) -> Result<(), TableError> {
        thread::scope(|scope| {
            let (made, to_write) = mpsc::sync_channel::<Result<RowGroup, TableError>>(0);
            let writing = scope.spawn(move || {
                for group in to_write {
                    self.write(group?)?;
                }
                self.end(metadata)
            });
            for group in groups {
                // Whoever fails takes no more, and says why.
                if made.send(group).is_err() {
                    break;
                }
            }
            drop(made);
            writing.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn write(&mut self, group: RowGroup) -> Result<(), TableError> {
        let RowGroup { height, cells } = group;
        let types = self.writer.parquet_schema().fields();
        let columns = RAYON.install(|| {
            let columns = cells.into_par_iter().zip(types).zip(&self.encodings);
            columns
                .map(|((cells, column_type), encoding)| pages(cells, column_type, encoding))
                .collect::<Result<Vec<_>, _>>()
        });
        let columns = columns.map_err(parquet(&self.path))?;
        let columns = columns.iter().map(|pages| {
            let pages = fallible_streaming_iterator::convert(pages.iter().map(Ok::<_, PolarsError>));
            Ok(DynStreamingIterator::new(pages))
        });
        self.writer.write(height as u64, DynIter::new(columns)).map_err(parquet(&self.path))
    }

    /// Ends the file without the schema of Arrow, which names text `string_view`: pyarrow can neither compare, join nor sort that.
    fn end(mut self, metadata: Vec<(String, String)>) -> Result<(), TableError> {
        let pairs = metadata.into_iter().map(|(key, value)| KeyValue { key, value: Some(value) });
        self.writer.end(Some(pairs.collect())).map_err(parquet(&self.path))?;
        self.writer.into_inner().flush().map_err(|source| TableError::Io { path: self.path, source })
    }
}

/// Cells of a column as pages, packed.
fn pages(
    cells: GroupCells,
    column_type: &ParquetType,
    encoding: &[Encoding],
) -> Result<Vec<CompressedPage>, PolarsError> {
    let array: Box<dyn Array> = cells.into_array()?;
    let columns = array_to_columns(array, column_type.clone(), OPTIONS, encoding)?;
    let pages = columns.into_iter().flatten().map(|page| Ok(compress(page?, Vec::new(), OPTIONS.compression)?));
    pages.collect()
}

/// Columns are not those of a table.
pub(crate) fn ragged(path: &Path) -> TableError {
    parquet(path)(PolarsError::ShapeMismatch("columns differ in length, or in type from the table's".into()))
}

fn parquet(path: &Path) -> impl Fn(PolarsError) -> TableError {
    let path = path.to_owned();
    move |source| TableError::Parquet { path: path.clone(), source: Box::new(source) }
}

/// A new file in the place of what is there; where that is a link, what it leads to stays.
fn replaced(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}
