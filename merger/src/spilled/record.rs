//! Records of a fixed length.

/// A record that can lie in a file.
pub(crate) trait Record: Copy {
    /// Stands for one that cannot be read.
    const BLANK: Self;
    /// Its length in a file.
    const BYTES: usize;

    fn write(&self, out: &mut Writer<'_>);

    fn read(input: &mut Reader<'_>) -> Self;
}

/// What is left of the bytes of a record that is written; what does not fit is left out.
pub(crate) struct Writer<'b>(&'b mut [u8]);

impl Writer<'_> {
    #[inline]
    pub fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some((place, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut() {
            *place = bytes;
            self.0 = rest;
        }
    }
}

/// What is left of a record; zeros behind its end.
pub(crate) struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    #[inline]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let Some((bytes, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *bytes
    }

    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.bytes())
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}

/// The record that the bytes begin with.
#[inline]
pub(super) fn read<T: Record>(bytes: &[u8]) -> T {
    T::read(&mut Reader(bytes))
}

/// Writes a record to its bytes.
#[inline]
pub(super) fn write<T: Record>(record: &T, bytes: &mut [u8]) {
    record.write(&mut Writer(bytes));
}

/// A record as it is read back, of exactly as many bytes as it says that it has.
#[cfg(test)]
pub(crate) fn read_back<T: Record>(record: &T) -> T {
    let mut bytes = vec![0; T::BYTES + 1];
    let mut writer = Writer(&mut bytes);
    record.write(&mut writer);
    assert_eq!(writer.0.len(), 1, "bytes of a record");
    let mut reader = Reader(&bytes[..T::BYTES]);
    let record = T::read(&mut reader);
    assert!(reader.0.is_empty(), "bytes of a record");
    record
}

/// The variant of an enum that has this number.
pub(crate) fn variant<T: Copy>(all: &[T], number: u8) -> Option<T> {
    all.get(usize::from(number)).copied()
}

impl Record for u32 {
    const BLANK: Self = 0;
    const BYTES: usize = 4;

    fn write(&self, out: &mut Writer<'_>) {
        out.bytes(self.to_le_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Self {
        input.u32()
    }
}

impl Record for u64 {
    const BLANK: Self = 0;
    const BYTES: usize = 8;

    fn write(&self, out: &mut Writer<'_>) {
        out.bytes(self.to_le_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Self {
        input.u64()
    }
}

impl<A: Record, B: Record> Record for (A, B) {
    const BLANK: Self = (A::BLANK, B::BLANK);
    const BYTES: usize = A::BYTES + B::BYTES;

    fn write(&self, out: &mut Writer<'_>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        (A::read(input), B::read(input))
    }
}
