package parity

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

type object = map[string]any

// rejectedEnv are the variables that the schema of MLflow and the chart reject. The operator ignores them in objects that were
// stored with an older schema.
var rejectedEnv = []string{
	"MLFLOW_BACKEND_STORE_URI", "MLFLOW_K8S_AUTH_AUTHORIZATION_MODE",
	"MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE",
	"MLFLOW_ENABLE_WORKSPACES", "MLFLOW_WORKSPACE_STORE_URI", "MLFLOW_SERVER_ALLOWED_HOSTS", "MLFLOW_TRACKING_INSECURE_TLS",
}

// Values returns the values with which the chart renders the objects that the operator builds for an MLflow.
func Values(m *mlflowv1.MLflow, in resources.Inputs) (map[string]any, error) {
	spec := &m.Spec
	image := object{"name": in.Image, "tag": ""}
	if spec.Image != nil {
		setUnlessEmpty(image, "name", spec.Image.Image)
		setUnlessEmpty(image, "imagePullPolicy", string(spec.Image.ImagePullPolicy))
	}
	server, err := serverValues(m, in)
	if err != nil {
		return nil, err
	}
	values := object{
		"namespace":          in.Namespace,
		"resourceSuffix":     suffix(m),
		"image":              image,
		"replicaCount":       ptr.Deref(spec.Replicas, 1),
		"mlflow":             server,
		"artifactsServer":    artifactsValues(spec, in),
		"env":                userEnv(spec),
		"envFrom":            spec.EnvFrom,
		"tls":                tlsValues(in),
		"service":            object{"annotations": object{"service.beta.openshift.io/serving-cert-secret-name": "mlflow-tls"}},
		"storage":            object{"enabled": false},
		"serviceAccount":     object{"name": orText(spec.ServiceAccountName, "mlflow-sa"), "annotations": spec.ServiceAccountAnnotations},
		"imagePullSecrets":   spec.ImagePullSecrets,
		"resources":          spec.Resources,
		"podSecurityContext": spec.PodSecurityContext,
		"securityContext":    spec.SecurityContext,
		"fsGroup":            1001,
		"podLabels":          spec.PodLabels,
		"podAnnotations":     spec.PodAnnotations,
		"resourceClaims":     spec.ResourceClaims,
		"metrics":            metricsValues(m, in),
		"networkPolicy": object{
			"ingressFrom":           spec.NetworkPolicyIngressFrom,
			"egressRules":           spec.NetworkPolicyEgressRules,
			"additionalEgressRules": spec.NetworkPolicyAdditionalEgressRules,
		},
		"caBundle": caValues(m, in),
	}
	if in.OpenShift {
		values["fsGroup"] = nil // the platform sets the group of pods
	}
	if spec.Storage != nil {
		if values["storage"], err = storageValues(spec); err != nil {
			return nil, err
		}
	}
	if spec.TemporaryStorage != nil && spec.TemporaryStorage.SizeLimit != nil {
		values["temporaryStorage"] = object{"sizeLimit": spec.TemporaryStorage.SizeLimit.String()}
	}
	placementValues(values, spec)
	jobValues(values, spec)
	return decodeValues(values)
}

// serverValues returns the value mlflow.
func serverValues(m *mlflowv1.MLflow, in resources.Inputs) (object, error) {
	spec := &m.Spec
	selector, err := metav1.LabelSelectorAsSelector(spec.WorkspaceLabelSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.workspaceLabelSelector: %w", err)
	}
	server := object{
		"serveArtifacts":       spec.ServeArtifacts,
		"artifactsDestination": orText(spec.ArtifactsDestination, "file:///mlflow/artifacts"),
		"defaultArtifactRoot":  spec.DefaultArtifactRoot,
		"workers":              ptr.Deref(spec.Workers, 1),
		"staticPrefix":         "/mlflow",
		"extraAllowedOrigins":  append(origin(in.ExternalURL), spec.ExtraAllowedOrigins...),
		"allowedHosts":         allowedHosts(spec, in),
		// An object that was stored by an earlier version can have both; the Secret has precedence.
		"backendStoreUri":                orText(spec.BackendStoreURI, "sqlite:////mlflow/mlflow.db"),
		"backendStoreUriFrom":            fromSecret(spec.BackendStoreURIFrom),
		"readReplicaBackendStoreUri":     spec.ReadReplicaBackendStoreURI,
		"readReplicaBackendStoreUriFrom": fromSecret(spec.ReadReplicaBackendStoreURIFrom),
		"registryStoreUri":               spec.RegistryStoreURI,
		"registryStoreUriFrom":           fromSecret(spec.RegistryStoreURIFrom),
	}
	if spec.WorkspaceLabelSelector != nil {
		server["workspaceLabelSelector"] = selector.String()
	}
	return server, nil
}

// artifactsValues returns the value artifactsServer.
func artifactsValues(spec *mlflowv1.MLflowSpec, in resources.Inputs) object {
	values := object{
		"enabled": resources.HasArtifactsServer(&mlflowv1.MLflow{Spec: *spec}), "url": in.ExternalURL,
		"service": object{"annotations": object{"service.beta.openshift.io/serving-cert-secret-name": "mlflow-artifacts-tls"}},
	}
	if server := spec.ArtifactsServer; server != nil {
		values["replicas"], values["workers"] = ptr.Deref(server.Replicas, 1), ptr.Deref(server.Workers, 1)
		values["resources"], values["resourceClaims"] = server.Resources, server.ResourceClaims
	}
	return values
}

// allowedHosts returns the host of the external URL and those of the spec, or `*` if the spec has none.
func allowedHosts(spec *mlflowv1.MLflowSpec, in resources.Inputs) []string {
	if len(spec.AllowedHosts) == 0 {
		return []string{"*"}
	}
	var hosts []string
	if base, err := url.Parse(in.ExternalURL); err == nil && base.Host != "" {
		hosts = append(hosts, base.Host)
	}
	for _, host := range spec.AllowedHosts {
		hosts = append(hosts, string(host))
	}
	return hosts
}

// placementValues sets the scheduling of pods and their volumes.
func placementValues(values object, spec *mlflowv1.MLflowSpec) {
	values["nodeSelector"], values["tolerations"], values["affinity"] = spec.NodeSelector, spec.Tolerations, spec.Affinity
	values["topologySpreadConstraints"], values["priorityClassName"] = spec.TopologySpreadConstraints, spec.PriorityClassName
	values["volumes"], values["volumeMounts"] = spec.Volumes, spec.VolumeMounts
}

// jobValues sets garbageCollection and traceArchival.
func jobValues(values object, spec *mlflowv1.MLflowSpec) {
	if gc := spec.GarbageCollection; gc != nil {
		values["garbageCollection"] = object{
			"enabled": true, "schedule": gc.Schedule, "olderThan": gc.OlderThan, "resources": gc.Resources,
		}
	}
	if archival := spec.TraceArchival; archival != nil {
		values["traceArchival"] = object{
			"enabled": archival.Enabled, "schedule": archival.Schedule, "location": archival.Location, "retention": archival.Retention,
			"maxTracesPerPass": archival.MaxTracesPerPass, "longRetentionAllowlist": archival.LongRetentionAllowlist,
			"resources": archival.Resources,
		}
	}
}

// tlsValues returns the value tls.
func tlsValues(in resources.Inputs) object {
	if in.OpenShift {
		return object{"defaultMode": 0o640, "ciphers": "PROFILE=SYSTEM", "caConfigMap": "openshift-service-ca.crt"}
	}
	return object{"defaultMode": 0o644}
}

func metricsValues(m *mlflowv1.MLflow, in resources.Inputs) object {
	values := object{"enabled": true, "serviceMonitor": "never"}
	if in.Served.Has(capability.ServiceMonitor) {
		values["serviceMonitor"] = "always"
	}
	if in.OpenShift {
		values["tlsConfig"] = object{
			"ca":         object{"configMap": object{"name": "openshift-service-ca.crt", "key": "service-ca.crt"}},
			"serverName": "mlflow" + suffix(m) + "." + in.Namespace + ".svc",
		}
	}
	return values
}

func caValues(m *mlflowv1.MLflow, in resources.Inputs) object {
	configMaps := []object{}
	if in.PlatformCABundle {
		configMaps = append(configMaps, object{"name": "odh-trusted-ca-bundle", "mountPath": "/etc/pki/tls/certs/platform"})
	}
	ref := m.Spec.CABundleConfigMap
	if ref != nil {
		configMaps = append(configMaps, object{"name": ref.Name, "mountPath": "/etc/pki/tls/certs/custom"})
	}
	return object{"filePaths": []string{"/etc/pki/tls/certs/ca-bundle.crt"}, "configMaps": configMaps, "verifyPostgres": ref != nil}
}

// storageValues returns the value storage. Fields of the claim without a value of the chart are in storage.spec.
func storageValues(spec *mlflowv1.MLflowSpec) (object, error) {
	storage := object{"enabled": true, "retentionPolicy": orText(string(spec.StorageRetentionPolicy), "Retain")}
	rest, err := decodeValues(spec.Storage)
	if err != nil {
		return nil, err
	}
	if size, found := spec.Storage.Resources.Requests[corev1.ResourceStorage]; found {
		storage["size"] = size.String()
	}
	if class := spec.Storage.StorageClassName; class != nil && *class != "" {
		storage["storageClassName"] = *class
		delete(rest, "storageClassName")
	}
	if modes := spec.Storage.AccessModes; len(modes) == 1 {
		storage["accessMode"] = modes[0]
		delete(rest, "accessModes")
	}
	storage["spec"] = rest
	return storage, nil
}

func userEnv(spec *mlflowv1.MLflowSpec) []corev1.EnvVar {
	entries := []corev1.EnvVar{}
	for _, entry := range spec.Env {
		if !slices.Contains(rejectedEnv, entry.Name) {
			entries = append(entries, entry)
		}
	}
	return entries
}

func fromSecret(ref *corev1.SecretKeySelector) object {
	if ref == nil {
		return object{}
	}
	return object{"secretKeyRef": ref}
}

// origin returns scheme, host and port of a URL, or nil if scheme or host is missing.
func origin(base string) []string {
	parsed, err := url.Parse(base)
	if err != nil || parsed.Scheme == "" || parsed.Host == "" {
		return nil
	}
	return []string{parsed.Scheme + "://" + parsed.Host}
}

func suffix(m *mlflowv1.MLflow) string {
	if m.Name == mlflowv1.SingletonName {
		return ""
	}
	return "-" + m.Name
}

func orText(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func setUnlessEmpty(into object, key, text string) {
	if text != "" {
		into[key] = text
	}
}

// decodeValues returns a value in the types of a decoded values file.
func decodeValues(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding values: %w", err)
	}
	var into map[string]any
	if err := json.Unmarshal(data, &into); err != nil {
		return nil, fmt.Errorf("decoding values: %w", err)
	}
	return into, nil
}
