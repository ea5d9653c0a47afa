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

// The variables that name the stores to MLflow.
const (
	envBackendStore  = "MLFLOW_BACKEND_STORE_URI"
	envReadReplica   = "MLFLOW_READ_REPLICA_BACKEND_STORE_URI"
	envRegistryStore = "MLFLOW_REGISTRY_STORE_URI"
)

// Store is a database of an MLflow.
type Store struct {
	// Field of the spec that holds the URI. The one that names a Secret has "From" at its end.
	Field string
	// URI is empty where a Secret holds it: that wins over one in the spec.
	URI  string
	From *corev1.SecretKeySelector

	variable string
}

// Stores are those that the spec names, the backend first. An MLflow that was
// stored before the backend became mandatory has a database on its volume.
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

// as is a variable that holds the URI.
func (s Store) as(name string) envVar {
	if s.From == nil {
		return value(name, s.URI)
	}
	variable := resources.SecretEnvVar(name, s.From.Name, s.From.Key)
	variable.ValueFrom.SecretKeyRef.Optional = s.From.Optional
	return *variable
}

// storeEnv names the stores to the server. The registry follows the backend.
func storeEnv(m *mlflowv1.MLflow) []envVar {
	all := Stores(m)
	var env []envVar
	for _, s := range all {
		env = append(env, s.as(s.variable))
	}
	if all[len(all)-1].variable != envRegistryStore {
		env = append(env, all[0].as(envRegistryStore))
	}
	return env
}

// IsShared reports whether a store is a server of databases, which several servers may use at once.
func IsShared(uri string) bool {
	return slices.ContainsFunc([]string{"postgresql://", "postgresql+", "mysql://", "mysql+"}, func(prefix string) bool {
		return strings.HasPrefix(uri, prefix)
	})
}

// choosesSSLMode reports whether the user says how PostgreSQL is to verify: by
// the variable, or in a URI, which libpq follows in preference to the variable.
func choosesSSLMode(m *mlflowv1.MLflow) bool {
	return slices.ContainsFunc(m.Spec.Env, func(e corev1.EnvVar) bool { return e.Name == envSSLMode }) ||
		slices.ContainsFunc(Stores(m), func(s Store) bool {
			return strings.HasPrefix(s.URI, "postgresql") && queryOf(s.URI).Has("sslmode")
		})
}

// userinfo finds the password before the last @ of the host part. Passwords in
// the wild are not always escaped, so this does not ask that the URI be valid.
var userinfo = regexp.MustCompile(`^[^:]+://[^/?#:@]*:[^/]*[^/]@`)

// HoldsPassword reports whether a store URI shows a password.
func HoldsPassword(uri string) bool {
	if userinfo.MatchString(uri) {
		return true
	}
	query := queryOf(uri)
	return query.Get("password") != "" || query.Get("passwd") != ""
}

// queryOf is what follows the question mark of a URI, as far as it can be read.
func queryOf(uri string) url.Values {
	_, text, _ := strings.Cut(uri, "?")
	text, _, _ = strings.Cut(text, "#")
	values, _ := url.ParseQuery(text) // holds what could be read
	return values
}

// StoresHash stands for the settings that say which databases are migrated.
func StoresHash(m *mlflowv1.MLflow) string {
	stores := slices.DeleteFunc(storeEnv(m), func(v envVar) bool { return *v.Name == envReadReplica })
	text, err := json.Marshal(stores)
	utilruntime.Must(err) // of texts
	return ShortHash(string(text))
}

// ShortHash distinguishes texts; it is never empty.
func ShortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
