//! What people put where a chart leaves a place empty, by the name of the place.

use serde_json::{Value, json};

use crate::charts::seed::Seed;

/// A map for that key.
pub(super) fn map(key: &str, seed: &mut Seed) -> Value {
    let key = key.to_ascii_lowercase();
    if key.contains("resources") {
        return json!({
            "limits": {"cpu": "500m", "memory": "512Mi", "ephemeral-storage": "2Gi"},
            "requests": {"cpu": 0.1, "memory": "128Mi"},
        });
    }
    if key.contains("annotation") {
        return json!({
            "example.com/checked": "true",
            "example.com/note": "a: b, {{ .Release.Name }}",
            "prometheus.io/port": "9090",
        });
    }
    if key.contains("label") || key.contains("selector") {
        return json!({"team": "blue", "example.com/tier": "1", "kubernetes.io/os": "linux"});
    }
    if key.contains("affinity") {
        return json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]}]},
        ]}}});
    }
    if key.contains("securitycontext") {
        return json!({
            "runAsUser": 1001,
            "runAsNonRoot": true,
            "fsGroup": 2_000_000,
            "capabilities": {"drop": ["ALL"]},
        });
    }
    if key.contains("strategy") {
        return json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}});
    }
    if key.contains("probe") {
        return json!({"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10});
    }
    if key.contains("env") {
        return json!({"LOG_LEVEL": "debug", "PORT": 8080, "VERBOSE": true});
    }
    let maps = [
        json!({"key": "value", "number": 1_000_000, "flag": true, "nested": {"list": ["a", 1, null]}}),
        json!({"name": "given", "value": "multi\nline\n"}),
        json!({"enabled": true}),
        json!({"config.yaml": "a: 1\nb:\n  - c\n", "10": "ten", "a-b": 0.5}),
    ];
    seed.choose(&maps).cloned().unwrap_or_default()
}

/// A list for that key.
pub(super) fn list(key: &str, seed: &mut Seed) -> Value {
    let key = key.to_ascii_lowercase();
    let has = |word: &str| key.contains(word);
    let lists = if has("toleration") {
        vec![json!([{"key": "dedicated", "operator": "Equal", "value": "blue", "effect": "NoSchedule"}])]
    } else if has("pullsecret") {
        vec![json!([{"name": "registry"}]), json!(["registry"])]
    } else if has("envfrom") || has("envvarsfrom") {
        vec![
            json!([{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "{{ .Release.Name }}-secret"}}]),
        ]
    } else if has("env") {
        vec![json!([
            {"name": "LOG_LEVEL", "value": "debug"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ])]
    } else if has("volumemount") {
        vec![json!([{"name": "extra", "mountPath": "/extra", "readOnly": true}])]
    } else if has("volumeclaim") {
        vec![json!([{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}])]
    } else if has("volume") {
        vec![json!([{"name": "extra", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "conf"}}])]
    } else if has("container") || has("sidecar") {
        vec![json!([{"name": "helper", "image": "busybox:1.37", "command": ["sh", "-c", "sleep 1; exit"]}])]
    } else if has("tls") {
        vec![json!([{"secretName": "chart-tls", "hosts": ["chart.example.com"]}])]
    } else if has("hosts") || has("hostnames") || has("domains") {
        vec![
            json!(["chart.example.com", "{{ .Release.Name }}.example.com"]),
            json!([{"host": "chart.example.com", "paths": [{"path": "/", "pathType": "Prefix"}]}]),
            json!([{"name": "chart.example.com", "path": "/", "tls": true}]),
        ]
    } else if has("ports") {
        vec![
            json!([{"name": "extra", "port": 9000, "targetPort": 9000, "containerPort": 9000, "protocol": "TCP"}]),
        ]
    } else if has("accessmodes") {
        vec![json!(["ReadWriteOnce"])]
    } else if has("spread") {
        vec![json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}])]
    } else if has("args") || has("command") || has("flags") {
        vec![json!(["--verbose", "--level=3", "--name={{ .Release.Name }}"])]
    } else if has("range") || has("cidr") {
        vec![json!(["10.0.0.0/8", "192.168.0.0/16"])]
    } else if has("objects") || has("deploy") || has("manifest") || has("resources") {
        vec![json!([
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}, "data": {"a": "1"}},
        ])]
    } else if has("rules") {
        vec![json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])]
    } else {
        vec![
            json!(["first", "second: item"]),
            json!([{"name": "first", "value": 1_000_000}, {"name": "second", "key": "k"}]),
            json!([1, 2.5, "3"]),
        ]
    };
    seed.choose(&lists).cloned().unwrap_or_default()
}

/// Text for that key.
pub(super) fn text(key: &str, seed: &mut Seed) -> Value {
    let key = key.to_ascii_lowercase();
    let has = |word: &str| key.contains(word);
    let texts: &[&str] = if has("password") || has("secret") || has("token") {
        &["s3cr3t-Pa$$", "existing"]
    } else if has("storageclass") {
        &["-", "fast"]
    } else if has("digest") {
        &["sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]
    } else if has("tag") || has("version") {
        &["1.2.3", "v2", "latest", "1.10", "2024-01-01"]
    } else if has("host") || has("domain") || has("url") || has("address") {
        &["chart.example.com", "https://chart.example.com:8443/path?q=1&r=2"]
    } else if has("namespace") {
        &["elsewhere"]
    } else if has("name") {
        &[
            "given-name",
            "a-name-that-is-longer-than-the-sixty-three-characters-which-kubernetes-allows",
        ]
    } else if has("size") || has("memory") {
        &["8Gi", "128Mi"]
    } else if has("schedule") || has("cron") {
        &["*/5 * * * *", "@daily"]
    } else if has("class") {
        &["nginx"]
    } else if has("port") {
        &["8080", "http"]
    } else if has("policy") {
        &["Always", "Retain"]
    } else if has("type") {
        &["ClusterIP", "LoadBalancer"]
    } else {
        &[
            "text",
            "{{ .Release.Name }}-of-{{ .Chart.Name }}",
            "yes",
            "012",
            "first line\n  second: line\n\nlast\n",
            "a: b # c",
            "ünï©ødé \u{1f600}",
            "a text that is so long that it has to be folded when it is written as a plain scalar of YAML again",
        ]
    };
    Value::from(seed.choose(texts).copied().unwrap_or_default())
}

/// A number.
pub(super) fn number(seed: &mut Seed) -> Value {
    let numbers = [
        json!(0),
        json!(1),
        json!(3),
        json!(0.5),
        json!(1_000_000),
        json!(12_345_678_901_i64),
        json!(-1),
    ];
    seed.choose(&numbers).cloned().unwrap_or_default()
}

/// A value of another type.
pub(super) fn confused(value: &Value, seed: &mut Seed) -> Value {
    let others: Vec<Value> = [
        json!(null),
        json!("text"),
        json!(7),
        json!(true),
        json!([]),
        json!({}),
        json!({"a": "b"}),
    ]
    .into_iter()
    .filter(|other| std::mem::discriminant(other) != std::mem::discriminant(value))
    .collect();
    seed.choose(&others).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_get_what_belongs_there() {
        let mut seed = Seed::new(1, "");
        assert!(map("resources", &mut seed)["limits"].is_object());
        assert_eq!(map("podAnnotations", &mut seed)["example.com/checked"], "true");
        assert_eq!(list("tolerations", &mut seed)[0]["effect"], "NoSchedule");
        assert!(list("extraVolumeMounts", &mut seed)[0]["mountPath"].is_string());
        assert!(text("adminPassword", &mut seed).is_string());
    }

    #[test]
    fn another_type_is_another() {
        let mut seed = Seed::new(1, "");
        for _ in 0..50 {
            assert!(!confused(&json!("x"), &mut seed).is_string());
        }
    }
}
