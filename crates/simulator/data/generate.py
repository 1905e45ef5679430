#!/usr/bin/env python3
"""Writes resources.txt and types.txt: the facts about Kubernetes' built-in kinds that the simulator needs.

Usage: generate.py SERVER TOKEN GOMODULES OUTDIR
  SERVER     URL of a running kube-apiserver of the wanted version (its certificate is not checked)
  TOKEN      a bearer token with full rights there
  GOMODULES  folder with the sources of k8s.io/{api,apimachinery,apiextensions-apiserver,kube-aggregator},
             as `go mod download` leaves them (`$GOMODCACHE/k8s.io`), with the suffix @VERSION

Discovery says which resources exist, OpenAPI v3 gives types, list kinds, map keys and merge keys, and the JSON tags in
the Go sources say what the server leaves out when it prints an object (`omitempty`, `omitzero`, pointers).
The line formats are documented where they are read: `src/registry/builtin.rs` and `src/schema/builtin.rs`.
"""
import glob, json, os, re, ssl, sys, urllib.request

server, token, gomods, out = sys.argv[1:5]
context = ssl._create_unverified_context()
AGGREGATED = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io"


def get(path, accept="application/json"):
    request = urllib.request.Request(server + path, headers={"Authorization": "Bearer " + token, "Accept": accept})
    return json.load(urllib.request.urlopen(request, context=context))


# --- JSON tags from the Go sources -------------------------------------------------------------------------------
PACKAGES = [("api", "io.k8s.api."), ("apimachinery", "io.k8s.apimachinery."),
            ("apiextensions-apiserver", "io.k8s.apiextensions-apiserver."), ("kube-aggregator", "io.k8s.kube-aggregator.")]
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
FIELD = re.compile(r'^\s*(?:(\w+)\s+)?([^\s`/][^`/]*?)\s*`[^`]*json:"([^"]*)"[^`]*`', re.M)
structs = {}  # OpenAPI name -> [(json name, go type, options)] with inline structs as ("", type, ...)
for module, prefix in PACKAGES:
    for root in glob.glob(f"{gomods}/{module}@*"):
        for path in glob.glob(root + "/**/*.go", recursive=True):
            base = os.path.basename(path)
            if base.endswith("_test.go") or not ("/apis/" in path or module == "api"):
                continue
            package = prefix + os.path.relpath(os.path.dirname(path), root).replace("/", ".")
            text = open(path).read()
            text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
            for name, body in STRUCT.findall(text):
                body = re.sub(r"^\s*//.*$", "", body, flags=re.M)
                fields = []
                for ident, gotype, tag in FIELD.findall(body):
                    parts = tag.split(",")
                    if not ident and not parts[0]:
                        parts.append("inline")
                    fields.append((parts[0], gotype.strip(), parts[1:]))
                structs.setdefault(package + "." + name, fields)


def go_fields(name, seen=()):
    """JSON name -> (pointer, omitempty, omitzero, go type)."""
    result = {}
    package = name.rsplit(".", 1)[0]
    for json_name, gotype, options in structs.get(name, []):
        if not json_name and "inline" in options:
            inner = gotype.lstrip("*")
            if "." in inner:
                alias, inner = inner.split(".")
                package2 = {"metav1": "io.k8s.apimachinery.pkg.apis.meta.v1", "v1": "io.k8s.api.core.v1",
                            "corev1": "io.k8s.api.core.v1"}.get(alias)
                target = f"{package2}.{inner}"
            else:
                target = f"{package}.{inner}"
            result.update(go_fields(target))
        elif json_name and json_name != "-":
            result[json_name] = (gotype.startswith("*"), "omitempty" in options, "omitzero" in options, gotype)
    return result


# --- resources -----------------------------------------------------------------------------------------------------
groups = get("/api", AGGREGATED)["items"] + get("/apis", AGGREGATED)["items"]
hashes = {}
lines = []
for group in groups:
    gname = group["metadata"].get("name", "")
    for version in group["versions"]:
        v = version["version"]
        legacy = get(f"/apis/{gname}/{v}" if gname else f"/api/{v}")
        for r in legacy["resources"]:
            hashes[(gname, v, r["name"])] = r.get("storageVersionHash", "-")
        lines.append(f"version {gname or 'core'} {v}")
        for r in version["resources"]:
            kind = r.get("responseKind", {}).get("kind") or "-"
            lines.append(" ".join(["resource", r["resource"], r["singularResource"] or "-", kind, r["scope"],
                                   ",".join(r["verbs"]), ",".join(r.get("shortNames", [])) or "-",
                                   ",".join(r.get("categories", [])) or "-", hashes[(gname, v, r["resource"])]]))
            for s in r.get("subresources", []):
                k = s.get("responseKind") or {}
                gvk = "/".join([k.get("group") or "-", k.get("version") or "-", k.get("kind") or "-"])
                lines.append(" ".join(["sub", s["subresource"], gvk, ",".join(s["verbs"])]))
header = "# Built-in resources of Kubernetes %s, from aggregated discovery. Written by data/generate.py.\n"
release = get("/version")["gitVersion"]
open(out + "/resources.txt", "w").write(header % release + "\n".join(lines) + "\n")

# --- types ---------------------------------------------------------------------------------------------------------
schemas, kinds = {}, {}
for path, entry in get("/openapi/v3")["paths"].items():
    if path.startswith("api/") or (path.startswith("apis/") and path.count("/") == 2):
        for name, schema in get(entry["serverRelativeURL"])["components"]["schemas"].items():
            schemas[name] = schema
for name, schema in schemas.items():
    for gvk in schema.get("x-kubernetes-group-version-kind", []):
        kinds.setdefault((gvk["group"], gvk["version"], gvk["kind"]), name)

SHORT = [("io.k8s.api.", "api."), ("io.k8s.apimachinery.pkg.apis.meta.v1.", "meta."), ("io.k8s.apimachinery.pkg.", "am."),
         ("io.k8s.apiextensions-apiserver.pkg.apis.", ""), ("io.k8s.kube-aggregator.pkg.apis.", "")]
SPECIAL = {"io.k8s.apimachinery.pkg.api.resource.Quantity": "q", "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "x",
           "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "t", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "u",
           "io.k8s.apimachinery.pkg.runtime.RawExtension": "r", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "{?}"}


def short(name):
    for long, abbreviation in SHORT:
        if name.startswith(long):
            return abbreviation + name[len(long):]
    return name


wanted = []


def reference(name, atomic):
    if name in SPECIAL:
        return SPECIAL[name]
    schema = schemas[name]
    if schema.get("type") not in ("object", None):
        return expression(schema)
    if name not in wanted:
        wanted.append(name)
    return "@" + short(name) + ("!" if atomic else "")


def expression(s):
    ref = s.get("$ref") or (s.get("allOf") or [{}])[0].get("$ref")
    if ref:
        return reference(ref.rsplit("/", 1)[1], s.get("x-kubernetes-map-type") == "atomic")
    kind = s.get("type")
    if kind == "string":
        return {"byte": "y", "date-time": "t"}.get(s.get("format"), "s")
    if kind == "integer":
        return "i" if s.get("format") == "int32" else "l"
    if kind == "number":
        return "n"
    if kind == "boolean":
        return "b"
    if kind == "array":
        list_type = s.get("x-kubernetes-list-type")
        strategy = s.get("x-kubernetes-patch-strategy")
        if list_type == "map":
            mark = "m:" + ",".join(s["x-kubernetes-list-map-keys"])
        elif list_type == "set":
            mark = "s"
        elif not list_type and strategy in ("merge", "merge,retainKeys"):
            key = s.get("x-kubernetes-patch-merge-key")
            mark = "m:" + key if key else "s"
        else:
            mark = "a"
        return f"[{mark}]" + expression(s["items"])
    if kind == "object":
        mark = "a" if s.get("x-kubernetes-map-type") == "atomic" else ""
        extra = s.get("additionalProperties")
        if isinstance(extra, dict):
            return "{" + mark + "}" + expression(extra)
        return "{?}"
    return "j"


lines = []
served = set()
for group in groups:
    for version in group["versions"]:
        for r in version["resources"]:
            g = group["metadata"].get("name", "")
            entries = [(g, version["version"], r.get("responseKind", {}).get("kind"))]
            for s in r.get("subresources", []):
                k = s.get("responseKind") or {}
                entries.append((k.get("group") or g, k.get("version") or version["version"], k.get("kind")))
            served.update(e for e in entries if e in kinds)
for g, v, k in sorted(served):
    lines.append(f"kind {g or 'core'} {v} {k} {reference(kinds[(g, v, k)], False)[1:]}")
done = 0
missing = []
while done < len(wanted):
    name = wanted[done]
    done += 1
    s = schemas[name]
    if s.get("type") != "object":
        lines.append(f"any {short(name)}")
        continue
    fields = go_fields(name)
    required = set(s.get("required", []))
    atomic = " atomic" if s.get("x-kubernetes-map-type") == "atomic" else ""
    free = " free" if not s.get("properties") else ""
    lines.append(f"type {short(name)}{atomic}{free}")
    keys = set()
    for field, fs in sorted((s.get("properties") or {}).items()):
        if field not in fields:
            missing.append(f"{name}.{field}")
        pointer, omitempty, omitzero, gotype = fields.get(field, (False, True, False, "?"))
        flags = ("p" if pointer else "") + ("o" if omitempty else "") + ("z" if omitzero else "") + ("!" if field in required else "")
        line = f" {field} {expression(fs)} {flags or '-'}"
        default = fs.get("default")
        if default not in (None, "", {}, 0, False):
            line += " d=" + json.dumps(default, separators=(",", ":"))
        strategy = fs.get("x-kubernetes-patch-strategy")
        if strategy:
            line += " ps=" + strategy
        if fs.get("x-kubernetes-patch-merge-key"):
            line += " mk=" + fs["x-kubernetes-patch-merge-key"]
        lines.append(line)
if missing:
    print("no Go field found for", missing, file=sys.stderr)
header = "# Types of Kubernetes %s, from OpenAPI v3 and the JSON tags of the Go types. Written by data/generate.py.\n"
open(out + "/types.txt", "w").write(header % release + "\n".join(lines) + "\n")
