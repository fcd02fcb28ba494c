"""The Kubernetes manifests: what they say of each other, and Dagster's settings inside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config

from tests.samples.support import ROOT, SAMPLES, parse

FOLDER = SAMPLES / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for name in KUSTOMIZATION["resources"]
    for manifest in yaml.safe_load_all((FOLDER / name).read_text("utf-8"))
]
BY_NAME = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in MANIFESTS}
DEPLOYMENTS = [manifest for manifest in MANIFESTS if manifest["kind"] == "Deployment"]
INSTANCE = BY_NAME["ConfigMap", "dagster-instance"]["data"]
LAUNCHER = yaml.safe_load(INSTANCE["dagster.yaml"])["run_launcher"]

#: Made by hand, as kustomization.yaml says: a secret has no place in a repository.
SECRETS = {"dagster-postgresql": {"postgresql-password"}}

#: What `K8sRunLauncher.config_type()` of dagster-k8s 0.29.27 takes. The package is not installed here: it brings the
#: client of all of Kubernetes, 126 MB.
LAUNCHER_KEYS = {
    "dagster_home",
    "env_config_maps",
    "env_secrets",
    "env_vars",
    "fail_pod_on_run_failure",
    "image_pull_policy",
    "image_pull_secrets",
    "instance_config_map",
    "job_image",
    "job_namespace",
    "k8s_api_ssl_ca_cert_file",
    "kubeconfig_file",
    "labels",
    "load_incluster_config",
    "only_allow_user_defined_env_vars",
    "only_allow_user_defined_k8s_config_fields",
    "postgres_password_secret",
    "resources",
    "run_k8s_config",
    "scheduler_name",
    "security_context",
    "service_account_name",
    "volume_mounts",
    "volumes",
}


def pod_of(deployment: dict[str, Any]) -> dict[str, Any]:
    return deployment["spec"]["template"]["spec"]


def container_of(deployment: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod_of(deployment)["containers"]
    return container


def by_name(deployment: dict[str, Any]) -> str:
    return deployment["metadata"]["name"]


def values_of(key: str, value: object) -> Iterator[Any]:
    """All values of a key, at any depth."""
    if isinstance(value, dict):
        yield from (found for name, found in value.items() if name == key)
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from values_of(key, child)


def test_every_manifest_is_listed_once() -> None:
    """No file is forgotten in kustomization.yaml, and no two objects have one name."""
    assert sorted(KUSTOMIZATION["resources"]) == sorted(
        path.name for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml"
    )
    assert len(BY_NAME) == len(MANIFESTS)


def test_what_pods_name_exists() -> None:
    """ConfigMaps and their keys, claims, secrets, volumes and service accounts, also those of the runs."""
    pods = [*map(pod_of, DEPLOYMENTS), LAUNCHER["config"]]
    for pod in pods:
        for reference in [*values_of("configMapRef", pod), *values_of("configMap", pod)]:
            assert ("ConfigMap", reference["name"]) in BY_NAME
        for claim in values_of("claimName", pod):
            assert ("PersistentVolumeClaim", claim) in BY_NAME
        for reference in values_of("secretKeyRef", pod):
            assert reference["key"] in SECRETS[reference["name"]]
        for account in [*values_of("serviceAccountName", pod), *values_of("service_account_name", pod)]:
            assert ("ServiceAccount", account) in BY_NAME
        volumes = {volume["name"] for volume in pod["volumes"]}
        mounts = [*values_of("volumeMounts", pod), *values_of("volume_mounts", pod)]
        assert {mount["name"] for group in mounts for mount in group} == volumes
        for mount in (mount for group in mounts for mount in group if "subPath" in mount):
            assert mount["subPath"] in INSTANCE
    for name in [LAUNCHER["config"]["instance_config_map"], *LAUNCHER["config"]["env_config_maps"]]:
        assert ("ConfigMap", name) in BY_NAME
    assert LAUNCHER["config"]["postgres_password_secret"] in SECRETS


def test_the_account_may_launch_runs() -> None:
    """The binding joins the role and the account that are there; the role makes and deletes Jobs."""
    binding = BY_NAME["RoleBinding", "dagster"]
    assert ("Role", binding["roleRef"]["name"]) in BY_NAME
    assert all((subject["kind"], subject["name"]) in BY_NAME for subject in binding["subjects"])
    verbs = {rule["resources"][0]: set(rule["verbs"]) for rule in BY_NAME["Role", "dagster"]["rules"]}
    assert verbs["jobs"] >= {"create", "delete", "get", "list"}


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=by_name)
def test_labels_and_selectors(deployment: dict[str, Any]) -> None:
    """A deployment finds its pods, and its service both them and their port."""
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    ports = {port["name"] for port in container_of(deployment).get("ports", [])}
    service = BY_NAME.get(("Service", by_name(deployment)))
    assert (service is not None) == bool(ports)
    if service is not None:
        assert service["spec"]["selector"] == labels
        assert {port["targetPort"] for port in service["spec"]["ports"]} == ports


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=by_name)
def test_commands(deployment: dict[str, Any], tmp_path: Path) -> None:
    """The programs themselves read the commands of containers and probes; a server listens on its port."""
    container = container_of(deployment)
    for mount in (mount for mount in container["volumeMounts"] if "subPath" in mount):
        (tmp_path / mount["subPath"]).write_text(INSTANCE[mount["subPath"]], "utf-8")
    home = LAUNCHER["config"]["dagster_home"]
    _, options = parse([word.replace(home, str(tmp_path)) for word in container["command"]])
    for port in container.get("ports", []):
        assert options["port"] == port["containerPort"]
    for command in [probe["command"] for probe in values_of("exec", container)]:
        _, checked = parse(command)
        assert checked.get("port") == options.get("port")
    for probe in values_of("httpGet", container):
        assert probe["port"] in {port["name"] for port in container["ports"]}


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=by_name)
def test_pods_are_confined(deployment: dict[str, Any]) -> None:
    """No root, no more rights than at the start, one replica, and a probe."""
    assert pod_of(deployment)["securityContext"]["runAsNonRoot"] is True
    container = container_of(deployment)
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert deployment["spec"]["replicas"] == 1
    assert {"livenessProbe", "readinessProbe"} & set(container)


def test_one_writer() -> None:
    """The volume is on one node; runs mount it where the code location does, beside it, and one at a time."""
    assert BY_NAME["PersistentVolumeClaim", "handbook-data"]["spec"]["accessModes"] == ["ReadWriteOnce"]
    code = BY_NAME["Deployment", "handbook-code"]
    (mount,) = LAUNCHER["config"]["volume_mounts"]
    assert mount in container_of(code)["volumeMounts"]
    (term,) = values_of("required_during_scheduling_ignored_during_execution", LAUNCHER["config"])
    assert term[0]["label_selector"]["match_labels"] == code["spec"]["template"]["metadata"]["labels"]
    environment = BY_NAME["ConfigMap", "handbook-environment"]["data"]
    for name in ("HANDBOOK_DATABASE", "HANDBOOK_DOCUMENTS"):
        assert Path(environment[name]).is_relative_to(mount["mountPath"])
        assert name in (SAMPLES / "project/handbook/defs/handbook/defs.yaml").read_text("utf-8")


def test_the_instance_settings(tmp_path: Path) -> None:
    """Dagster's schema takes dagster.yaml; the launcher's keys are held against those of its release."""
    (tmp_path / "dagster.yaml").write_text(INSTANCE["dagster.yaml"], "utf-8")
    settings, _ = dagster_instance_config(str(tmp_path))
    assert settings["concurrency"]["pools"]["default_limit"] == 1
    assert settings["run_monitoring"]["free_slots_after_run_end_seconds"] > 0
    assert settings["telemetry"] == {"enabled": False}
    database = settings["storage"]["postgres"]["postgres_db"]
    assert database["scheme"] == "postgresql+psycopg2"
    assert database["hostname"] == {"env": "DAGSTER_PG_HOST"}
    assert "DAGSTER_PG_HOST" in BY_NAME["ConfigMap", "handbook-environment"]["data"]
    assert (LAUNCHER["module"], LAUNCHER["class"]) == ("dagster_k8s", "K8sRunLauncher")
    assert set(LAUNCHER["config"]) <= LAUNCHER_KEYS
    assert LAUNCHER["config"]["job_namespace"] == KUSTOMIZATION["namespace"]


def test_the_workspace() -> None:
    """Web interface and daemon look for the code location at its service, by name and port."""
    (location,) = yaml.safe_load(INSTANCE["workspace.yaml"])["load_from"]
    service = BY_NAME["Service", location["grpc_server"]["host"]]
    assert [port["port"] for port in service["spec"]["ports"]] == [location["grpc_server"]["port"]]


def test_one_image() -> None:
    """All containers run the image that kustomize tags, and runs that of the code location."""
    (image,) = KUSTOMIZATION["images"]
    assert {container_of(deployment)["image"] for deployment in DEPLOYMENTS} == {image["name"]}
    variables = {v["name"]: v.get("value") for v in container_of(BY_NAME["Deployment", "handbook-code"])["env"]}
    assert variables["DAGSTER_CURRENT_IMAGE"] == f"{image['name']}:{image['newTag']}"


def test_the_dockerfile() -> None:
    """What it copies is there, and its paths are those of the manifests."""
    lines = (FOLDER / "Dockerfile").read_text("utf-8").splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert copied
    assert all((ROOT / path).exists() for path in copied)
    home = LAUNCHER["config"]["dagster_home"]
    assert any(f"DAGSTER_HOME={home} " in line for line in lines)
    mounts = [
        mount["mountPath"] for d in DEPLOYMENTS for mount in container_of(d)["volumeMounts"] if "subPath" in mount
    ]
    assert {str(Path(path).parent) for path in mounts} == {home}
