package resources

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const envSSLMode = "PGSSLMODE"

// Variables of MLflow with the URIs of the stores.
const (
	envBackendStore  = "MLFLOW_BACKEND_STORE_URI"
	envReadReplica   = "MLFLOW_READ_REPLICA_BACKEND_STORE_URI"
	envRegistryStore = "MLFLOW_REGISTRY_STORE_URI"
)

// Store is a database of an MLflow.
type Store struct {
	// Field is the field of the spec with the URI. The field with the reference to a Secret has the suffix "From".
	Field string
	// URI is empty if From is set, because From takes precedence.
	URI  string
	From *corev1.SecretKeySelector

	variable string
}

// Stores returns the stores of the spec, the backend first. The default backend, SQLite on the volume, is for an MLflow that was stored before
// the field became required.
func Stores(m *mlflowv1.MLflow) []Store {
	spec := &m.Spec
	all := []Store{
		{"backendStoreUri", cmp.Or(spec.BackendStoreURI, defaultBackend), spec.BackendStoreURIFrom, envBackendStore},
		{"readReplicaBackendStoreUri", spec.ReadReplicaBackendStoreURI, spec.ReadReplicaBackendStoreURIFrom, envReadReplica},
		{"registryStoreUri", spec.RegistryStoreURI, spec.RegistryStoreURIFrom, envRegistryStore},
	}
	for i := range all {
		if all[i].From != nil {
			all[i].URI = ""
		}
	}
	return slices.DeleteFunc(all, func(s Store) bool { return s.From == nil && s.URI == "" })
}

// envVar returns a variable with the URI.
func (s Store) envVar(name string) envVar {
	if s.From == nil {
		return value(name, s.URI)
	}
	variable := resources.SecretEnvVar(name, s.From.Name, s.From.Key)
	variable.ValueFrom.SecretKeyRef.Optional = s.From.Optional
	return *variable
}

// storeEnv returns the variables of the stores. The default of the registry is the backend.
func storeEnv(m *mlflowv1.MLflow) []envVar {
	all := Stores(m)
	var env []envVar
	for _, s := range all {
		env = append(env, s.envVar(s.variable))
	}
	if all[len(all)-1].variable != envRegistryStore {
		env = append(env, all[0].envVar(envRegistryStore))
	}
	return env
}

// IsDatabaseServer reports whether a URI is of a PostgreSQL or MySQL server, which several MLflow servers can use concurrently.
func IsDatabaseServer(uri string) bool {
	return slices.ContainsFunc([]string{"postgresql://", "postgresql+", "mysql://", "mysql+"}, func(prefix string) bool {
		return strings.HasPrefix(uri, prefix)
	})
}

// setsSSLMode reports whether the spec sets the SSL mode of PostgreSQL, in a variable or in a URI.
func setsSSLMode(m *mlflowv1.MLflow) bool {
	return slices.ContainsFunc(m.Spec.Env, func(e corev1.EnvVar) bool { return e.Name == envSSLMode }) ||
		slices.ContainsFunc(Stores(m), func(s Store) bool {
			return strings.HasPrefix(s.URI, "postgresql") && uriQuery(s.URI).Has("sslmode")
		})
}

// userinfo matches a password before the last @ of the authority. The URI may be invalid, because passwords are not always escaped.
var userinfo = regexp.MustCompile(`^[^:]+://[^/?#:@]*:[^/]*[^/]@`)

// HoldsPassword reports whether a store URI contains a password.
func HoldsPassword(uri string) bool {
	if userinfo.MatchString(uri) {
		return true
	}
	query := uriQuery(uri)
	return query.Get("password") != "" || query.Get("passwd") != ""
}

// uriQuery returns the valid query parameters of a URI.
func uriQuery(uri string) url.Values {
	_, text, _ := strings.Cut(uri, "?")
	text, _, _ = strings.Cut(text, "#")
	values, _ := url.ParseQuery(text) // with an error it returns the valid parameters
	return values
}

// StoresHash returns a hash of the stores that are migrated.
func StoresHash(m *mlflowv1.MLflow) string {
	stores := slices.DeleteFunc(storeEnv(m), func(v envVar) bool { return *v.Name == envReadReplica })
	text, _ := json.Marshal(stores) // apply configurations: encoding cannot fail
	return ShortHash(string(text))
}

// ShortHash returns a hash of 16 hexadecimal digits.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

const defaultClaimSize = "2Gi"

// PersistentVolumeClaim returns the claim of the spec. With the default policy Retain it has no owner, so that it outlives the MLflow.
func PersistentVolumeClaim(m *mlflowv1.MLflow, in Inputs) apply.Object {
	config := corev1ac.PersistentVolumeClaim(ClaimName(m), in.Namespace).
		WithLabels(Labels(NameOf(m))).
		WithSpec(claimSpec(m))
	ownership := apply.Unowned
	if !Retains(m) {
		ownership = apply.Controlled
	}
	return apply.Object{Config: config, Ownership: ownership}
}

// claimSpec returns spec.storage with defaults.
func claimSpec(m *mlflowv1.MLflow) *corev1ac.PersistentVolumeClaimSpecApplyConfiguration {
	spec := m.Spec.Storage.DeepCopy()
	if class := spec.StorageClassName; class != nil && *class == "" && spec.VolumeName == "" && spec.Selector == nil {
		spec.StorageClassName = nil // "" means the default class, as in Helm charts and in the legacy operator, unless a volume is selected
	}
	if len(spec.AccessModes) == 0 {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	requests := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(defaultClaimSize)}
	maps.Copy(requests, spec.Resources.Requests)
	spec.Resources.Requests = requests
	return resources.MustConvert[corev1ac.PersistentVolumeClaimSpecApplyConfiguration](spec)
}

// Retains reports whether the claim outlives its MLflow, which is the default.
func Retains(m *mlflowv1.MLflow) bool { return m.Spec.StorageRetentionPolicy != mlflowv1.StorageDelete }

// withVolume mounts the volume if it is used: a pod that mounts it may have to run on the node of the server.
func withVolume(m *mlflowv1.MLflow, used bool) part {
	if !used {
		return part{}
	}
	claim := corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(ClaimName(m))
	return withMount(corev1ac.Volume().WithName("mlflow-storage").WithPersistentVolumeClaim(claim), resources.Mount("mlflow-storage", storagePath))
}

// serverUsesVolume reports whether the tracking server may read or write metadata, artifacts or archived traces in files. It reads the
// archive even if there is an artifacts server.
func serverUsesVolume(m *mlflowv1.MLflow) bool {
	spec := &m.Spec
	serves := spec.ServeArtifacts && (spec.ArtifactsDestination == "" || isFile(spec.ArtifactsDestination))
	return spec.Storage != nil && (mayUseFiles(m, envBackendStore, envRegistryStore, envReadReplica) ||
		serves || isFile(spec.DefaultArtifactRoot) || archivesToFiles(m))
}

// archivalUsesVolume reports whether trace archival may read or write files.
func archivalUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (mayUseFiles(m, envBackendStore, envRegistryStore) || archivesToFiles(m))
}

// garbageCollectionUsesVolume reports whether garbage collection may access files directly. It deletes artifacts in a local artifact root
// itself, and served artifacts through the server.
func garbageCollectionUsesVolume(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && (mayUseFiles(m, envBackendStore) || isFile(m.Spec.DefaultArtifactRoot))
}

// mayUseFiles reports whether one of the stores may be a file. A URI in a Secret is unknown; with an artifacts server no store is a file.
func mayUseFiles(m *mlflowv1.MLflow, variables ...string) bool {
	return !HasArtifactsServer(m) && slices.ContainsFunc(Stores(m), func(s Store) bool {
		return slices.Contains(variables, s.variable) && (s.From != nil || strings.HasPrefix(s.URI, "sqlite"))
	})
}

func archivesToFiles(m *mlflowv1.MLflow) bool {
	return Archives(m) && isFile(m.Spec.TraceArchival.Location)
}

var schemePattern = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*):`)

// isFile reports whether MLflow treats a location as a local path: without a scheme, or with the case-insensitive scheme file. It returns
// false for "".
func isFile(location string) bool {
	scheme := schemePattern.FindStringSubmatch(location)
	return location != "" && (scheme == nil || strings.EqualFold(scheme[1], "file"))
}
