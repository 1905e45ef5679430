//! Restarting what runs an older proxy than the one that the component injects now (K9, K41).

use evenkeel_cluster::Proxies;
use evenkeel_core::InjectedProxies;
use evenkeel_steps::{Change, ClosureStep, Context, Decision, Failure, Outcome, step};
use serde_json::Value;

use crate::Work;
use crate::operation::Operation;
use crate::pipeline::{APPLY_TIMEOUT, DUE, RENDERED, SESSION};
use crate::render::{Documents, reference};

/// Istio's record of how it injects.
const INJECTOR: &str = "istio-sidecar-injector";

/// Restarts workloads of others, where the strategy does and the component says which proxies it injects.
pub(crate) fn restart() -> ClosureStep<Operation> {
    step("restart-proxies")
        .needs((RENDERED, DUE, SESSION))
        .after("post-hooks")
        .timeout(APPLY_TIMEOUT)
        .decide(|cx: Context<Operation>, (rendered, due, session)| async move {
            let operation = cx.state();
            let Work::Apply {
                proxies: Some(injected),
                ..
            } = &operation.task.work
            else {
                return Ok(Decision::End(Outcome::done()));
            };
            if !due.strategy.steps().restarts_proxies {
                return Ok(Decision::End(Outcome::done()));
            }
            let proxies = wanted(injected, &rendered.documents)?;
            let cluster = operation.task.target.cluster();
            let failed = |error| operation.failed(error);
            let stale = cluster.stale_proxies(&proxies).await.map_err(failed)?;
            for left in &stale.left {
                cx.progress()
                    .line(format!("{} keeps its proxy: {}", left.object, left.reason));
            }
            if stale.workloads().len() == 0 {
                return Ok(Decision::End(Outcome::done()));
            }
            let changes = stale
                .workloads()
                .map(|object| Change::new("restart", object.to_string()).detail(proxies.image.clone()))
                .collect();
            Ok(Decision::act(changes, async move {
                let operation = cx.state();
                // Its component may be as it should be, and an older attempt must restart nothing any more.
                let fenced = session.lock().await.take_fence().await;
                fenced.map_err(|error| operation.failed(error))?;
                let (cluster, attempt) = (operation.task.target.cluster(), &operation.task.attempt);
                let progress = cx.progress();
                let told = |object: &_| progress.line(format!("restarted {object} for {}", proxies.image));
                let restarted = cluster.restart_for_proxies(&proxies, &stale, attempt, told).await;
                let restarted = restarted.map_err(|error| operation.failed(error))?;
                Ok(Outcome::changed(format!("{restarted} workloads restarted")))
            }))
        })
}

/// The proxies that new pods get.
fn wanted(injected: &InjectedProxies, documents: &Documents) -> Result<Proxies, Failure> {
    let image = injected.image.clone().or_else(|| injector_image(documents));
    let image = image.ok_or_else(|| {
        Failure::invalid(format!(
            "the image of its proxies is not known: it renders no ConfigMap {INJECTOR} with values that name it; write it \
             into proxies.image"
        ))
    })?;
    Ok(Proxies {
        container: injected.container.clone(),
        image,
    })
}

/// The image in Istio's own record among the rendered objects, put together as Istio does.
fn injector_image(documents: &Documents) -> Option<String> {
    let is_injector = |object: &Value| {
        let object = reference(object);
        object.kind == "ConfigMap" && object.group.is_empty() && object.name.starts_with(INJECTOR)
    };
    let mut injectors = documents
        .objects
        .iter()
        .filter(|document| is_injector(&document.object));
    injectors.find_map(|document| {
        let values = document.object.pointer("/data/values")?.as_str()?;
        let values: Value = serde_json::from_str(values).ok()?;
        let global = values.get("global")?;
        let text = |pointer: &str| {
            let value = global.pointer(pointer)?;
            // A tag may look like a number.
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), ToOwned::to_owned);
            Some(text).filter(|text| !text.is_empty() && text != "null")
        };
        let image = text("/proxy/image")?;
        if image.contains('/') {
            return Some(image);
        }
        let (hub, tag) = (text("/hub")?, text("/tag")?);
        let variant = text("/variant").filter(|variant| !tag.ends_with(&format!("-{variant}")));
        let variant = variant.map(|variant| format!("-{variant}")).unwrap_or_default();
        Some(format!("{hub}/{image}:{tag}{variant}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::Document;

    fn image(values: &Value) -> Option<String> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "istio-sidecar-injector-canary"},
            "data": {"values": values.to_string()},
        });
        injector_image(&Documents {
            objects: vec![Document {
                source: "x".to_owned(),
                object,
            }],
            hooks: Vec::new(),
            is_marked: false,
        })
    }

    #[test]
    fn the_image_is_put_together_as_istio_does() {
        let global = |more: Value| {
            let mut global =
                json!({"hub": "docker.io/istio", "tag": "1.27.0", "proxy": {"image": "proxyv2"}});
            if let (Some(global), Some(more)) = (global.as_object_mut(), more.as_object()) {
                global.extend(more.clone());
            }
            json!({"global": global})
        };
        let of = |more| image(&global(more));
        assert_eq!(of(json!({})).as_deref(), Some("docker.io/istio/proxyv2:1.27.0"));
        assert_eq!(
            of(json!({"variant": "distroless"})).as_deref(),
            Some("docker.io/istio/proxyv2:1.27.0-distroless")
        );
        assert_eq!(
            of(json!({"proxy": {"image": "example.com/p:1"}})).as_deref(),
            Some("example.com/p:1")
        );
        assert_eq!(image(&json!({"global": {}})), None);
    }
}
