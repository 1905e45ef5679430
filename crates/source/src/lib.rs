//! Where charts and manifests come from: directories and archives.
