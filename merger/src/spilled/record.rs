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

/// Where a record's fields are appended.
pub(crate) struct Writer<'b>(&'b mut Vec<u8>);

impl<'b> Writer<'b> {
    pub fn new(bytes: &'b mut Vec<u8>) -> Self {
        Self(bytes)
    }

    pub fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.0.extend_from_slice(&bytes);
    }
}

/// What is left of a record; zeros behind its end.
pub(crate) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

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
pub(super) fn read<T: Record>(bytes: &[u8]) -> T {
    T::read(&mut Reader::new(bytes))
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
