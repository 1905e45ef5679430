//! Writes the definitions of the custom resources into a folder, by default `deploy/crds`: what `cargo xtask generate`
//! runs.
#![allow(clippy::print_stdout, reason = "it tells its user what it wrote")]

use std::path::PathBuf;

use evenkeel_operator::resources::definitions;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1);
    let folder = folder.map_or_else(|| PathBuf::from("deploy/crds"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    for definition in definitions() {
        let file = folder.join(definition.file_name());
        std::fs::write(&file, definition.to_string())?;
        println!("{}", file.display());
    }
    Ok(())
}
