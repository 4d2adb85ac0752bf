//! The static library behind internal/tokenize: see Cargo.toml.

mod batch;
mod boundary;
#[allow(dead_code, unused_imports, clippy::all)]
mod daulet;
mod inside;
mod load;
mod long;
mod plain;

/// Tokenizing allocates several small vectors per word; with glibc's allocator
/// one core is a quarter slower.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
