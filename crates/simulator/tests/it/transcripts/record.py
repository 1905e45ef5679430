#!/usr/bin/env python3
"""Plays scenarios against a real kube-apiserver and records its answers in recorded.json.

Usage: record.py SERVER TOKEN > recorded.json

The server runs without kube-controller-manager, so that nothing but the requests changes objects. Each scenario gets a
namespace of its own, written NS. What differs from run to run is normalised: uids become UID, times TIME, resource
versions v1, v2… in the order of their appearance in the scenario, addresses IP and node ports PORT. The replay in
replay.rs normalises the simulator's answers the same way and compares.
"""
import json, re, ssl, sys, urllib.error, urllib.request

server, token = sys.argv[1:3]
context = ssl._create_unverified_context()
APPLY, MERGE, JSONP, STRATEGIC = ("application/apply-patch+yaml", "application/merge-patch+json",
                                  "application/json-patch+json", "application/strategic-merge-patch+json")
scenarios = []


def scenario(name, *steps):
    scenarios.append({"name": name, "steps": list(steps)})


def req(method, path, body=None, type="application/json", agent="recorder/1.0"):
    step = {"method": method, "path": path, "agent": agent}
    if body is not None:
        step["body"] = body
        step["type"] = type
    return step


CM = "/api/v1/namespaces/NS/configmaps"
SEC = "/api/v1/namespaces/NS/secrets"
SVC = "/api/v1/namespaces/NS/services"
POD = "/api/v1/namespaces/NS/pods"
PVC = "/api/v1/namespaces/NS/persistentvolumeclaims"
DEP = "/apis/apps/v1/namespaces/NS/deployments"
STS = "/apis/apps/v1/namespaces/NS/statefulsets"
DS = "/apis/apps/v1/namespaces/NS/daemonsets"
JOB = "/apis/batch/v1/namespaces/NS/jobs"
CJ = "/apis/batch/v1/namespaces/NS/cronjobs"
ROLE = "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles"
RB = "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings"
NP = "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies"
ING = "/apis/networking.k8s.io/v1/namespaces/NS/ingresses"
PDB = "/apis/policy/v1/namespaces/NS/poddisruptionbudgets"
HPA = "/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers"
HPA1 = "/apis/autoscaling/v1/namespaces/NS/horizontalpodautoscalers"
SA = "/api/v1/namespaces/NS/serviceaccounts"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def obj(api, kind, name, **rest):
    meta = {"name": name, **rest.pop("meta", {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **rest}


def cm(name="a", **rest):
    return obj("v1", "ConfigMap", name, **rest)


def apply(base, name, body, manager="m1", force=False, sub="", extra=""):
    q = f"?fieldManager={manager}" + ("&force=true" if force else "") + extra
    return req("PATCH", f"{base}/{name}{sub}{q}", body, APPLY)


def merge(base, name, body, manager="updater", sub=""):
    return req("PATCH", f"{base}/{name}{sub}?fieldManager={manager}", body, MERGE)


def get(base, name, sub=""):
    return req("GET", f"{base}/{name}{sub}")


def container(name="c", image="nginx:1", **rest):
    return {"name": name, "image": image, **rest}


def podspec(*containers, **rest):
    return {"containers": list(containers) or [container()], **rest}


def deployment(name="d", labels=None, spec=None, containers=(), meta=None, template_meta=None, **rest):
    labels = labels or {"app": name}
    template = {"metadata": {"labels": labels, **(template_meta or {})}, "spec": podspec(*containers, **(spec or {}))}
    body = {"selector": {"matchLabels": labels}, "template": template, **rest}
    return obj("apps/v1", "Deployment", name, spec=body, **({"meta": meta} if meta else {}))


# --- plain ownership ---
scenario("apply creates", apply(CM, "a", cm(data={"x": "1", "y": "2"}, meta={"labels": {"l": "1"}, "annotations": {"n": "1"}})), get(CM, "a"))
scenario("apply again is no write", apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"x": "1"})), get(CM, "a"))
scenario("apply changes a value", apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"x": "2"})))
scenario("apply adds a field", apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"x": "1", "y": "1"})))
scenario("apply drops a field", apply(CM, "a", cm(data={"x": "1", "y": "2"})), apply(CM, "a", cm(data={"x": "1"})))
scenario("apply drops all data", apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm()))
scenario("apply drops labels", apply(CM, "a", cm(meta={"labels": {"a": "1", "b": "2"}})), apply(CM, "a", cm(meta={"labels": {"a": "1"}})), apply(CM, "a", cm()))
scenario("apply empty maps", apply(CM, "a", cm(data={}, meta={"labels": {}})), apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={})))
scenario("apply with null", apply(CM, "a", cm(data={"x": None, "y": "1"})), get(CM, "a"))
scenario("conflict", apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"x": "2"}), "m2"), get(CM, "a"))
scenario("conflicts on several fields", apply(CM, "a", cm(data={"x": "1", "y": "1", "z": "1"}, meta={"labels": {"q": "1"}})), apply(CM, "a", cm(data={"x": "2", "y": "2", "z": "1"}, meta={"labels": {"q": "2"}}), "m2"))
scenario("force takes over", apply(CM, "a", cm(data={"x": "1", "y": "1"})), apply(CM, "a", cm(data={"x": "2"}), "m2", True), apply(CM, "a", cm(data={"x": "1", "y": "1"})), apply(CM, "a", cm(data={"y": "1"})), get(CM, "a"))
scenario("shared ownership", apply(CM, "a", cm(data={"x": "1", "y": "1"})), apply(CM, "a", cm(data={"x": "1"}), "m2"), apply(CM, "a", cm(data={"y": "1"})), get(CM, "a"), apply(CM, "a", cm(), "m2"))
scenario("second owner changes a shared field", apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"x": "1"}), "m2"), apply(CM, "a", cm(data={"x": "2"}), "m2"), apply(CM, "a", cm(data={"x": "2"}), "m2", True))
scenario("three managers", apply(CM, "a", cm(data={"x": "1"}), "m1"), apply(CM, "a", cm(data={"y": "1"}), "m2"), apply(CM, "a", cm(data={"x": "1", "y": "1"}), "m3"), apply(CM, "a", cm(), "m1"), apply(CM, "a", cm(), "m2"), apply(CM, "a", cm(), "m3"))
scenario("update takes ownership", apply(CM, "a", cm(data={"x": "1", "y": "1"})), merge(CM, "a", {"data": {"x": "2"}}), apply(CM, "a", cm(data={"x": "1", "y": "1"})), apply(CM, "a", cm(data={"x": "1", "y": "1"}), force=True))
scenario("update with the same value takes nothing", apply(CM, "a", cm(data={"x": "1"})), merge(CM, "a", {"data": {"x": "1"}}), get(CM, "a"))
scenario("update removes an applied field", apply(CM, "a", cm(data={"x": "1", "y": "1"})), merge(CM, "a", {"data": {"x": None}}), apply(CM, "a", cm(data={"x": "1", "y": "1"})))
scenario("update removes the whole map", apply(CM, "a", cm(data={"x": "1"})), merge(CM, "a", {"data": None}), apply(CM, "a", cm(data={"x": "1"})))
scenario("create then apply", req("POST", CM + "?fieldManager=creator", cm(data={"x": "1", "y": "1"})), apply(CM, "a", cm(data={"x": "2"})), apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"z": "1"})), get(CM, "a"))
scenario("same name applies and updates", apply(CM, "a", cm(data={"x": "1"}), "m1"), merge(CM, "a", {"data": {"x": "2", "y": "2"}}, "m1"), apply(CM, "a", cm(data={"x": "1"}), "m1"), apply(CM, "a", cm(data={"x": "1"}), "m1", True), apply(CM, "a", cm(), "m1"))
scenario("manager from the user agent", req("POST", CM, cm(data={"x": "1"}), agent="my-tool/v2.3 (linux)"), req("PUT", CM + "/a", cm(data={"x": "2"}), agent="other"))
scenario("put replaces", apply(CM, "a", cm(data={"x": "1", "y": "1"})), req("PUT", CM + "/a?fieldManager=putter", cm(data={"x": "1", "z": "1"})), apply(CM, "a", cm(data={"x": "1", "y": "1"})))
scenario("put of the same content is no write", req("POST", CM, cm(data={"x": "1"})), req("PUT", CM + "/a", cm(data={"x": "1"})))
scenario("json patch", req("POST", CM, cm(data={"x": "1"})), req("PATCH", CM + "/a?fieldManager=jp", [{"op": "replace", "path": "/data/x", "value": "2"}, {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}], JSONP))
scenario("reset of managed fields", apply(CM, "a", cm(data={"x": "1"})), merge(CM, "a", {"metadata": {"managedFields": [{}]}}), merge(CM, "a", {"data": {"y": "1"}}), apply(CM, "a", cm(data={"x": "2"}), "m2"), get(CM, "a"))
scenario("managed fields edited by hand", apply(CM, "a", cm(data={"x": "1"}), "m1"), req("PATCH", CM + "/a?fieldManager=jp", [{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "renamed"}], JSONP), apply(CM, "a", cm(data={"x": "2"}), "m1"))
scenario("dry run", apply(CM, "a", cm(data={"x": "1"}), extra="&dryRun=All"), get(CM, "a"), apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"x": "2"}), extra="&dryRun=All"), apply(CM, "a", cm(data={"x": "3"}), "m2", extra="&dryRun=All"), get(CM, "a"))
scenario("optimistic lock", apply(CM, "a", cm(data={"x": "1"})), apply(CM, "a", cm(data={"x": "2"}, meta={"resourceVersion": "1"})), apply(CM, "a", cm(data={"x": "2"}, meta={"uid": "12"})))
scenario("bad applies", apply(CM, "a", cm(data={"x": 1})), apply(CM, "a", cm(data="x")), apply(CM, "a", cm(data=["x"])), apply(CM, "a", {**cm(), "bogus": 1}), apply(CM, "a", cm(meta={"bogus": 1})), apply(CM, "b", cm("a")), apply(CM, "a", obj("v1", "Secret", "a")), apply(CM, "a", obj("apps/v1", "ConfigMap", "a")), apply(CM, "a", {"metadata": {"name": "a"}}), apply(CM, "a", cm(meta={"managedFields": [{"manager": "x"}]})), apply(CM, "a", cm(meta={"namespace": "other"})), req("PATCH", CM + "/a", cm(), APPLY), apply(CM, "A_b", cm("A_b")))
scenario("more than ten updaters", req("POST", CM + "?fieldManager=u0", cm(data={"k0": "1"})), *[merge(CM, "a", {"data": {f"k{i}": "1"}}, f"u{i}") for i in range(1, 14)])
scenario("finalizers are a set", apply(CM, "a", cm(meta={"finalizers": ["a.b/c", "d.e/f"]})), apply(CM, "a", cm(meta={"finalizers": ["g.h/i", "d.e/f"]}), "m2"), apply(CM, "a", cm(meta={"finalizers": ["d.e/f"]})), apply(CM, "a", cm(meta={"finalizers": ["d.e/f", "d.e/f"]})), apply(CM, "a", cm(), "m2"), apply(CM, "a", cm()))
scenario("owner references are a map by uid", apply(CM, "a", cm(meta={"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-1111-1111-1111-111111111111"}]})), apply(CM, "a", cm(meta={"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "22222222-2222-2222-2222-222222222222"}]}), "m2"), apply(CM, "a", cm()))
scenario("kubectl client-side to server-side", req("POST", CM + "?fieldManager=kubectl-client-side-apply", cm(data={"x": "1", "y": "1"}, meta={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(cm(data={"x": "1"}))}})), apply(CM, "a", cm(data={"x": "2"}), "kubectl"), apply(CM, "a", cm(data={"x": "2", "y": "2"}), "kubectl"), apply(CM, "a", cm(data={"x": "3"}), "other"))
scenario("before first apply", req("POST", CM, cm(data={"x": "1"})), merge(CM, "a", {"metadata": {"managedFields": []}}), apply(CM, "a", cm(data={"x": "1", "y": "1"})), apply(CM, "a", cm(data={"x": "2"})))

# --- secrets, services ---
scenario("secret with stringData", apply(SEC, "s", obj("v1", "Secret", "s", stringData={"a": "x"}, data={"b": "eA=="})), apply(SEC, "s", obj("v1", "Secret", "s", stringData={"a": "x"}, data={"b": "eA=="})), apply(SEC, "s", obj("v1", "Secret", "s", data={"b": "eA=="})), apply(SEC, "s", obj("v1", "Secret", "s", data={"b": "?"})))
scenario("service ports", apply(SVC, "s", obj("v1", "Service", "s", spec={"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80}]})), apply(SVC, "s", obj("v1", "Service", "s", spec={"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80}]})), apply(SVC, "s", obj("v1", "Service", "s", spec={"ports": [{"name": "https", "port": 443, "targetPort": "tls"}]}), "m2"), apply(SVC, "s", obj("v1", "Service", "s", spec={"selector": {"a": "c"}, "ports": [{"name": "web", "port": 80, "protocol": "TCP"}]})), apply(SVC, "s", obj("v1", "Service", "s", spec={"selector": {"a": "c"}})), apply(SVC, "s", obj("v1", "Service", "s", spec={"ports": [{"port": 80}, {"port": 80}]}), "m3"), get(SVC, "s"))
scenario("service same port two protocols", apply(SVC, "s", obj("v1", "Service", "s", spec={"ports": [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]})), apply(SVC, "s", obj("v1", "Service", "s", spec={"ports": [{"name": "u", "port": 53, "protocol": "UDP"}]})))
scenario("service types", apply(SVC, "np", obj("v1", "Service", "np", spec={"type": "NodePort", "ports": [{"port": 80}]})), apply(SVC, "lb", obj("v1", "Service", "lb", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})), apply(SVC, "en", obj("v1", "Service", "en", spec={"type": "ExternalName", "externalName": "x.y"})), apply(SVC, "hl", obj("v1", "Service", "hl", spec={"clusterIP": "None", "ports": [{"port": 80}]})), apply(SVC, "ca", obj("v1", "Service", "ca", spec={"sessionAffinity": "ClientIP", "ports": [{"port": 80}]})))
scenario("service refuses another address", req("POST", SVC, obj("v1", "Service", "s", spec={"ports": [{"port": 80}]})), merge(SVC, "s", {"spec": {"clusterIP": "None"}}), merge(SVC, "s", {"metadata": {"labels": {"l": "1"}}}))
scenario("bad services", req("POST", SVC, obj("v1", "Service", "s", spec={})), req("POST", SVC, obj("v1", "Service", "s", spec={"ports": [{"port": 0}]})), req("POST", SVC, obj("v1", "Service", "s", spec={"type": "X", "ports": [{"port": 1}]})), req("POST", SVC, obj("v1", "Service", "1s", spec={"ports": [{"port": 1}]})), req("POST", SVC, obj("v1", "Service", "s", spec={"ports": [{"port": 1}, {"port": 2}]})))

# --- deployments ---
scenario("deployment", apply(DEP, "d", deployment()), apply(DEP, "d", deployment()), apply(DEP, "d", deployment(replicas=3)), apply(DEP, "d", deployment()), get(DEP, "d"))
scenario("deployment created by update", req("POST", DEP + "?fieldManager=c", deployment(replicas=2)), apply(DEP, "d", deployment(replicas=2)), apply(DEP, "d", deployment(replicas=3)), apply(DEP, "d", deployment(replicas=3), force=True))
scenario("containers by name", apply(DEP, "d", deployment(containers=[container("a"), container("b")])), apply(DEP, "d", deployment(containers=[container("sidecar", "s:1")]), "m2"), apply(DEP, "d", deployment(containers=[container("b", "nginx:2"), container("a")])), apply(DEP, "d", deployment(containers=[container("a")])), apply(DEP, "d", deployment(containers=[container("a"), container("z"), container("y")])))
scenario("env by name", apply(DEP, "d", deployment(containers=[container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])])), apply(DEP, "d", obj("apps/v1", "Deployment", "d", spec={"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "C", "value": "3"}]}]}}}), "m2"), apply(DEP, "d", deployment(containers=[container(env=[{"name": "B", "value": "9"}])])), apply(DEP, "d", deployment(containers=[container(env=[{"name": "B", "value": "9"}, {"name": "B", "value": "8"}])])), get(DEP, "d"))
scenario("container ports by port and protocol", apply(DEP, "d", deployment(containers=[container(ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP", "name": "u"}])])), apply(DEP, "d", deployment(containers=[container(ports=[{"containerPort": 80, "protocol": "UDP", "name": "u"}])])), apply(DEP, "d", deployment(containers=[container(ports=[{"containerPort": 81}])])))
scenario("args are atomic", apply(DEP, "d", deployment(containers=[container(args=["a", "b"])])), apply(DEP, "d", obj("apps/v1", "Deployment", "d", spec={"template": {"spec": {"containers": [{"name": "c", "args": ["z"]}]}}}), "m2"), apply(DEP, "d", deployment(containers=[container(args=["a"])])), apply(DEP, "d", deployment(containers=[container()])), apply(DEP, "d", deployment(containers=[container(args=[])])))
scenario("volumes and mounts", apply(DEP, "d", deployment(spec={"volumes": [{"name": "v", "configMap": {"name": "x"}}, {"name": "e", "emptyDir": {}}]}, containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])])), apply(DEP, "d", deployment(spec={"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}, containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])])), get(DEP, "d"))
scenario("resources and probes", apply(DEP, "d", deployment(containers=[container(resources={"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 1}}, readinessProbe={"httpGet": {"path": "/", "port": "http"}}, livenessProbe={"tcpSocket": {"port": 80}, "periodSeconds": 3}, lifecycle={"preStop": {"exec": {"command": ["x"]}}}, securityContext={"runAsUser": 0})])), apply(DEP, "d", deployment(containers=[container(resources={"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 1}}, readinessProbe={"httpGet": {"path": "/", "port": "http"}}, livenessProbe={"tcpSocket": {"port": 80}, "periodSeconds": 3}, lifecycle={"preStop": {"exec": {"command": ["x"]}}}, securityContext={"runAsUser": 0})])), apply(DEP, "d", deployment(containers=[container(resources={"limits": {"cpu": "1500m"}})])))
scenario("pod spec variety", apply(DEP, "d", deployment(spec={"serviceAccountName": "x", "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}], "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "h", "labelSelector": {"matchLabels": {"a": "b"}}}}]}}, "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}], "imagePullSecrets": [{"name": "p"}], "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}], "securityContext": {"fsGroup": 1}, "terminationGracePeriodSeconds": 0, "initContainers": [container("i", "init")], "hostNetwork": False, "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}, "priorityClassName": ""}, containers=[container(imagePullPolicy="Never", envFrom=[{"configMapRef": {"name": "e"}}], env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])])), get(DEP, "d"))
scenario("selector is immutable", apply(DEP, "d", deployment()), apply(DEP, "d", deployment(labels={"app": "other"})), get(DEP, "d"))
scenario("strategy change", apply(DEP, "d", deployment()), apply(DEP, "d", deployment(strategy={"type": "Recreate"})), apply(DEP, "d", deployment(strategy={"type": "Recreate", "rollingUpdate": None})))
scenario("bad deployments", req("POST", DEP, obj("apps/v1", "Deployment", "d", spec={})), req("POST", DEP, deployment(replicas=-1)), req("POST", DEP, deployment(replicas="x")), req("POST", DEP, deployment(containers=[container(image="")])), req("POST", DEP, deployment(containers=[container(), container()])), req("POST", DEP, deployment(containers=[container(ports=[{"containerPort": 0}])])), req("POST", DEP, deployment(containers=[container(volumeMounts=[{"name": "no", "mountPath": "/x"}])])), apply(DEP, "d", deployment(replicas="x")), apply(DEP, "d", deployment(spec={"bogus": 1})), req("POST", DEP + "?fieldValidation=Strict", deployment(spec={"bogus": 1})))
scenario("status is not the applier's", apply(DEP, "d", {**deployment(), "status": {"replicas": 7}}), apply(DEP, "d", obj("apps/v1", "Deployment", "d", status={"replicas": 1, "conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m"}]}), "ctl", sub="/status"), merge(DEP, "d", {"status": {"readyReplicas": 1}, "spec": {"replicas": 9}, "metadata": {"annotations": {"s": "1"}}}, "kcm", "/status"), apply(DEP, "d", deployment()), apply(DEP, "d", obj("apps/v1", "Deployment", "d", status={"replicas": 2}), "other", sub="/status"), get(DEP, "d"))
scenario("scale", apply(DEP, "d", deployment(replicas=1)), get(DEP, "d", "/scale"), merge(DEP, "d", {"spec": {"replicas": 4}}, "scaler", "/scale"), apply(DEP, "d", deployment(replicas=1)), apply(DEP, "d", deployment()), get(DEP, "d"), req("PUT", DEP + "/d/scale?fieldManager=scaler", obj("autoscaling/v1", "Scale", "d", meta={"namespace": "NS"}, spec={"replicas": 2})), get(DEP, "d"))
scenario("strategic merge", req("POST", DEP, deployment(containers=[container("a", env=[{"name": "X", "value": "1"}]), container("b")])), req("PATCH", DEP + "/d?fieldManager=smp", {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "nginx:9", "env": [{"name": "Y", "value": "2"}]}]}}}}, STRATEGIC), req("PATCH", DEP + "/d?fieldManager=smp", {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b", "command": ["x"]}]}}}}, STRATEGIC), req("PATCH", DEP + "/d?fieldManager=smp", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}, "template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}}}, STRATEGIC))
scenario("annotations bump the generation of deployments", apply(DEP, "d", deployment()), merge(DEP, "d", {"metadata": {"annotations": {"a": "1"}}}), merge(DEP, "d", {"metadata": {"labels": {"a": "1"}}}))

# --- other kinds ---
scenario("stateful set", apply(STS, "s", obj("apps/v1", "StatefulSet", "s", spec={"serviceName": "x", "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": podspec()}, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]})), apply(STS, "s", obj("apps/v1", "StatefulSet", "s", spec={"serviceName": "x", "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": podspec()}, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]})), merge(STS, "s", {"spec": {"serviceName": "y"}}))
scenario("daemon set", apply(DS, "s", obj("apps/v1", "DaemonSet", "s", spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": podspec()}})), apply(DS, "s", obj("apps/v1", "DaemonSet", "s", spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": podspec()}})))
scenario("job", apply(JOB, "j", obj("batch/v1", "Job", "j", spec={"template": {"spec": podspec(restartPolicy="Never")}})), apply(JOB, "j", obj("batch/v1", "Job", "j", spec={"template": {"spec": podspec(restartPolicy="Never")}})), apply(JOB, "j", obj("batch/v1", "Job", "j", spec={"backoffLimit": 2, "template": {"spec": podspec(restartPolicy="Never")}})))
scenario("cron job", apply(CJ, "c", obj("batch/v1", "CronJob", "c", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": podspec(restartPolicy="OnFailure")}}}})), apply(CJ, "c", obj("batch/v1", "CronJob", "c", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": podspec(restartPolicy="OnFailure")}}}})))
scenario("rbac", apply(ROLE, "r", obj("rbac.authorization.k8s.io/v1", "Role", "r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])), apply(ROLE, "r", obj("rbac.authorization.k8s.io/v1", "Role", "r", rules=[])), apply(RB, "b", obj("rbac.authorization.k8s.io/v1", "RoleBinding", "b", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, subjects=[{"kind": "ServiceAccount", "name": "x", "namespace": "NS"}, {"kind": "User", "name": "u"}])), apply(RB, "b", obj("rbac.authorization.k8s.io/v1", "RoleBinding", "b", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "other"})))
scenario("network policy", apply(NP, "n", obj("networking.k8s.io/v1", "NetworkPolicy", "n", spec={"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}]})), apply(NP, "n", obj("networking.k8s.io/v1", "NetworkPolicy", "n", spec={"podSelector": {}, "egress": [{}], "policyTypes": ["Egress"]})))
scenario("ingress", apply(ING, "i", obj("networking.k8s.io/v1", "Ingress", "i", spec={"ingressClassName": "x", "rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}], "tls": [{"hosts": ["a.b"], "secretName": "t"}]})), apply(ING, "i", obj("networking.k8s.io/v1", "Ingress", "i", spec={"defaultBackend": {"service": {"name": "s", "port": {"name": "http"}}}})))
scenario("disruption budget", apply(PDB, "p", obj("policy/v1", "PodDisruptionBudget", "p", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}})), apply(PDB, "p", obj("policy/v1", "PodDisruptionBudget", "p", spec={"maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}})))
scenario("autoscaler", apply(HPA, "h", obj("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]})), req("GET", HPA1 + "/h"), apply(HPA, "h", obj("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 4, "minReplicas": 2})))
scenario("service account", apply(SA, "x", obj("v1", "ServiceAccount", "x", imagePullSecrets=[{"name": "a"}])), apply(SA, "x", obj("v1", "ServiceAccount", "x", imagePullSecrets=[{"name": "b"}], automountServiceAccountToken=False), "m2"), apply(SA, "x", obj("v1", "ServiceAccount", "x")))
scenario("volume claim", apply(PVC, "p", obj("v1", "PersistentVolumeClaim", "p", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})), apply(PVC, "p", obj("v1", "PersistentVolumeClaim", "p", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})))
scenario("immutable data", req("POST", CM, cm(data={"x": "1"}, immutable=True)), apply(CM, "a", cm(data={"x": "2"}), force=True), merge(CM, "a", {"immutable": False}), merge(CM, "a", {"metadata": {"labels": {"l": "1"}}}))

# --- life cycle ---
scenario("delete with preconditions", req("POST", CM, cm()), req("DELETE", CM + "/a", {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}), req("DELETE", CM + "/a", {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": "1"}}), req("DELETE", CM + "/a?dryRun=All"), get(CM, "a"), req("DELETE", CM + "/a"), get(CM, "a"), req("DELETE", CM + "/a"))
scenario("finalizers", req("POST", CM, cm(meta={"finalizers": ["a.b/c"]})), req("DELETE", CM + "/a"), req("DELETE", CM + "/a"), apply(CM, "a", cm(data={"x": "1"})), merge(CM, "a", {"metadata": {"finalizers": ["a.b/c", "n.e/w"]}}), merge(CM, "a", {"metadata": {"finalizers": None}}), get(CM, "a"))
scenario("propagation", req("POST", CM, cm()), req("DELETE", CM + "/a", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}), req("POST", CM, cm("b")), req("DELETE", CM + "/b?propagationPolicy=Orphan"), req("DELETE", CM + "/b", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Wrong"}))
scenario("deletion bumps the generation", req("POST", DEP, deployment(meta={"finalizers": ["a.b/c"]})), req("DELETE", DEP + "/d"), merge(DEP, "d", {"metadata": {"finalizers": []}}))
scenario("delete collection", req("POST", CM, cm("a", meta={"labels": {"l": "1"}})), req("POST", CM, cm("b")), req("DELETE", CM + "?labelSelector=l%3D1"), req("GET", CM))
scenario("errors", get(CM, "no"), req("PUT", CM + "/no", cm("no")), merge(CM, "no", {}), req("DELETE", CM + "/no"), req("POST", CM, cm()), req("POST", CM, cm()), req("POST", CM, {"apiVersion": "v1", "kind": "ConfigMap"}), req("POST", CM, cm("A_B")), req("POST", CM, cm(meta={"namespace": "other"})), req("PUT", CM + "/a", cm("b")), req("PUT", CM + "/a", cm(meta={"resourceVersion": "1"})), req("POST", "/api/v1/namespaces/nosuch/configmaps", cm()), req("GET", "/api/v1/namespaces/NS/nosuch"), req("POST", CM + "/a", cm()), req("PATCH", CM + "/a", {}, "application/foo"), req("PATCH", CM + "/a", [{"op": "remove", "path": "/data/q"}], JSONP), req("GET", CM + "?labelSelector=a%3D%3D%3D"), req("GET", CM + "?fieldSelector=data.a%3D1"), req("GET", CM + "?resourceVersion=abc"), merge(CM, "a", {"metadata": {"labels": {"x": "%"}}}), merge(CM, "a", {"metadata": {"name": "b"}}), merge(CM, "a", {"data": {"a": 1}}))
scenario("unknown fields", req("POST", CM, {**cm(), "bogus": 1}), req("POST", CM + "?fieldValidation=Strict", {**cm("b"), "bogus": 1, "metadata": {"name": "b", "x": 1}}), req("POST", CM + "?fieldValidation=Ignore", {**cm("c"), "bogus": 1}), req("PATCH", CM + "/a?fieldValidation=Strict", {"bogus": 1}, MERGE))
scenario("lists", req("POST", CM, cm("a", meta={"labels": {"l": "1"}})), req("POST", CM, cm("b", meta={"labels": {"l": "2"}})), req("POST", CM, cm("c")), req("GET", CM + "?labelSelector=l"), req("GET", CM + "?labelSelector=l+in+(2),l!%3D1"), req("GET", CM + "?fieldSelector=metadata.name%3Dc"), req("GET", CM + "?fieldSelector=metadata.name!%3Dc&labelSelector=!l"))
scenario("pods", req("POST", POD, obj("v1", "Pod", "p", spec=podspec(serviceAccountName="", automountServiceAccountToken=False))), merge(POD, "p", {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}), merge(POD, "p", {"spec": {"nodeName": "n"}}), merge(POD, "p", {"status": {"phase": "Running", "podIP": "1.2.3.4"}}, "kubelet", "/status"))
scenario("namespaces", req("POST", "/api/v1/namespaces", obj("v1", "Namespace", "NS-x")), apply("/api/v1/namespaces", "NS-x", obj("v1", "Namespace", "NS-x", meta={"labels": {"a": "b"}})), req("DELETE", "/api/v1/namespaces/NS-x"), req("POST", "/api/v1/namespaces/NS-x/configmaps", cm()), req("DELETE", "/api/v1/namespaces/default"), req("GET", "/api/v1/namespaces/NS-x"))

# --- custom resources ---
SCHEMA = {"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
    "size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "enum": ["a", "b"], "default": "a"}, "replicas": {"type": "integer"},
    "any": {"x-kubernetes-int-or-string": True}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "nested": {"type": "object", "properties": {"on": {"type": "boolean", "default": True}, "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"}}},
    "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "proto"], "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}, "atom": {"type": "array", "items": {"type": "string"}},
    "one": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}, "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}}}}}}


def crd(plural, kind, **version):
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.NS.dev", spec={"group": "NS.dev", "scope": "Namespaced", "names": {"plural": plural, "kind": kind, "shortNames": ["wd"]}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, **version}]})


W = "/apis/NS.dev/v1/namespaces/NS/widgets"


def w(name="a", spec=None, **rest):
    return obj("NS.dev/v1", "Widget", name, **({"spec": spec} if spec is not None else {}), **rest)


SUBS = {"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}
define = [req("POST", CRD, crd("widgets", "Widget", **SUBS)), {"wait": f"{CRD}/widgets.NS.dev"}]
scenario("definition", *define, req("GET", f"{CRD}/widgets.NS.dev"), req("GET", "/apis/NS.dev"), req("GET", "/apis/NS.dev/v1"))
scenario("custom apply", *define, apply(W, "a", w(spec={"size": 1, "ports": [{"port": 1, "name": "x"}], "tags": ["t1", "t2"], "atom": ["1"], "labels": {"k": "v"}, "one": {"a": "1"}})), apply(W, "a", w(spec={"size": 1, "ports": [{"port": 1, "name": "x"}], "tags": ["t1", "t2"], "atom": ["1"], "labels": {"k": "v"}, "one": {"a": "1"}})), apply(W, "a", w(spec={"ports": [{"port": 1, "proto": "UDP"}], "tags": ["t3"], "labels": {"k2": "v2"}}), "m2"), apply(W, "a", w(spec={"atom": ["2"], "one": {"b": "1"}, "size": 2}), "m2"), apply(W, "a", w(spec={"atom": ["2"], "one": {"b": "1"}, "size": 2}), "m2", True), apply(W, "a", w(spec={"size": 2, "tags": ["t1"]})), get(W, "a"))
scenario("custom errors", *define, req("POST", W, w(spec={"size": 0, "mode": "z", "bogus": 1, "tags": ["a", "a"], "nested": {"name": "ABCD"}})), req("POST", W, w(spec={"size": "x"})), req("POST", W, w()), req("POST", W + "?fieldValidation=Strict", w(spec={"size": 1, "bogus": 1})), apply(W, "a", w(spec={"size": 1, "bogus": 1})), apply(W, "a", w(spec={"size": "x"})), apply(W, "a", w(spec={"size": 1, "ports": [{"name": "x"}]})), apply(W, "a", w(spec={"size": 1, "ports": [{"port": 1}, {"port": 1}]})), apply(W, "a", w(spec={"size": 1, "tags": ["a", "a"]})), req("PATCH", W + "/a", {}, STRATEGIC))
scenario("custom defaults and pruning", *define, req("POST", W, w(spec={"size": 1, "bogus": 2, "free": {"x": {"y": None}}, "labels": None, "nested": {}, "ports": [{"port": 1}], "any": "5"}, status={"phase": "x"})), merge(W, "a", {"spec": {"nested": {"on": False}, "any": 5, "mode": None}}), get(W, "a"))
scenario("custom status and scale", *define, apply(W, "a", w(spec={"size": 1})), get(W, "a", "/scale"), merge(W, "a", {"spec": {"replicas": 3}}, "scaler", "/scale"), get(W, "a", "/scale"), apply(W, "a", w(status={"phase": "up", "conditions": [{"type": "Ready", "status": "True"}]}, meta={"labels": {"x": "y"}}), "ctl", sub="/status"), apply(W, "a", w(spec={"size": 1})), merge(W, "a", {"status": {"replicas": 3}, "spec": {"size": 9}}, "ctl2", "/status"), merge(W, "a", {"status": {"phase": "down"}}), get(W, "a"))
scenario("custom without status subresource", req("POST", CRD, crd("widgets", "Widget")), {"wait": f"{CRD}/widgets.NS.dev"}, apply(W, "a", w(spec={"size": 1}, status={"phase": "x"})), merge(W, "a", {"status": {"phase": "y"}}), req("GET", W + "/a/status"))

# --- play ---
state = {}


def call(step, ns):
    data = None if step.get("body") is None else json.dumps(step["body"], sort_keys=True).replace("NS", ns).encode()
    headers = {"Authorization": "Bearer " + token, "User-Agent": step.get("agent", "recorder/1.0")}
    if data is not None:
        headers["Content-Type"] = step["type"]
    request = urllib.request.Request(server + step["path"].replace("NS", ns), data=data, headers=headers, method=step["method"])
    try:
        with urllib.request.urlopen(request, context=context) as response:
            return response.status, response.headers.get_all("Warning") or [], response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get_all("Warning") or [], error.read().decode()


import time
run = str(int(time.time()))[-6:]
for number, entry in enumerate(scenarios):
    ns = f"t{run}n{number}"
    call(req("POST", "/api/v1/namespaces", obj("v1", "Namespace", ns)), ns)
    call(req("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", obj("v1", "ServiceAccount", "default")), ns)
    for step in entry["steps"]:
        if "wait" in step:
            for _ in range(100):
                if '"type":"Established","status":"True"' in call(req("GET", step["wait"]), ns)[2] and call(req("GET", W), ns)[0] == 200:
                    break
                time.sleep(0.1)
            time.sleep(0.5)
            continue
        code, warnings, body = call(step, ns)
        step["code"] = code
        if warnings:
            step["warnings"] = warnings
        body = body.replace(ns, "NS")
        try:
            step["answer"] = json.loads(body)
        except ValueError:
            step["text"] = body

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
FIXED = {"11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"}


def normalise(value, versions, key=""):
    if isinstance(value, dict):
        out = {k: normalise(v, versions, k) for k, v in sorted(value.items())}
        if "storageVersionHash" in out:
            out["storageVersionHash"] = "HASH"
        return out
    if isinstance(value, list):
        return [normalise(v, versions, key) for v in value]
    if key == "resourceVersion" and isinstance(value, str) and value != "1":
        return versions.setdefault(value, f"v{len(versions) + 1}")
    if key == "nodePort" and value:
        return "PORT"
    if isinstance(value, str):
        value = UUID.sub(lambda m: m.group() if m.group() in FIXED else "UID", value)
        value = TIME.sub("TIME", value)
        value = re.sub(r"10\.0\.0\.\d+", "IP", value)
        value = re.sub(r"ResourceVersion in record \(\d+\)", "ResourceVersion in record (RV)", value)
    return value


for entry in scenarios:
    versions = {}
    for step in entry["steps"]:
        if "answer" in step:
            step["answer"] = normalise(step["answer"], versions)
print("[")
print(",\n".join(json.dumps(entry, separators=(",", ":"), sort_keys=True) for entry in scenarios))
print("]")
