//! Helm charts as Helm 4.3.1 renders them, byte for byte. Pure: bytes in, manifests out.
//!
//! ```text
//!  files | .tgz ──load──▶ Chart ─────────────┐   Arc<Chart>: shared by threads, templates parsed once per variant
//!                                             │
//!  user's values ──enable──▶ Variant ─────────┤   which sub-charts take part (conditions, tags, aliases)
//!        │                                    ▼
//!        └────coalesce──▶ scopes ──▶ execute templates ──▶ split ──▶ sort ──▶ Rendered
//! ```
//!
//! Everything a render can see goes in as an argument: values, release, capabilities, time, randomness, the
//! maker of private keys and the reader behind `lookup`. What made the result more than a function of its other inputs is told by
//! [`Rendered::taints`]. One render runs on one thread, because templates may change the values that the next one
//! sees; different renders share nothing but the parsed chart.

mod capabilities;
mod chart;
mod convert;
mod decode;
mod dependencies;
mod error;
mod glob;
mod ignore;
mod key;
mod load;
mod manifest;
mod metadata;
mod objects;
mod path_match;
mod plain;
mod post_render;
mod release;
mod render;
mod rendered;
mod schema;
mod values;
mod variant;

pub use capabilities::{Capabilities, KubeVersion};
pub use chart::{Chart, ChartFile, mentions_capabilities};
pub use error::Error;
pub use evenkeel_gotemplate::{
    Curve, Instant, KeyAlgorithm, KeyError, KeyMaker, Limits, PrivateKey, RandomSource, Taints,
};
pub use ignore::IgnoreRules;
pub use key::{render_key, values_digest};
pub use load::archive::archive_files;
pub use manifest::{Head, Hook, HookDeletePolicy, HookEvent, Manifest};
pub use metadata::{Dependency, ImportValues, Maintainer, Metadata};
pub use objects::RenderedObject;
pub use plain::plain_objects;
pub use post_render::PostRenderer;
pub use release::Release;
pub use render::{Hosts, Lookup, RenderOptions, name_from_template, render};
pub use rendered::{PrintOptions, Rendered, print_only};
pub use schema::SchemaReader;
pub use values::{ValueSources, ValuesFile};
