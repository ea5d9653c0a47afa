package resources

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
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
	// URI is empty if From is set, which takes precedence.
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

// IsSQLServer reports whether a store is a database server, which several servers can use concurrently.
func IsSQLServer(uri string) bool {
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
	text, err := json.Marshal(stores)
	utilruntime.Must(err)
	return ShortHash(string(text))
}

// ShortHash returns a hash of 16 hexadecimal digits.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
