package resources

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	envDisableTelemetry = "MLFLOW_DISABLE_TELEMETRY"
	// workspaceStore is the store URI with which MLflow uses the namespaces of the cluster as workspaces.
	workspaceStore = "kubernetes://"
)

type envVar = corev1ac.EnvVarApplyConfiguration

// Variables that a user may not set, because they control authorization, the database or TLS. The CRD rejects them. In an MLflow that was
// stored under an older CRD, they are ignored.
const (
	envAuthorization     = "MLFLOW_K8S_AUTH_AUTHORIZATION_MODE"
	envJobExecution      = "MLFLOW_SERVER_ENABLE_JOB_EXECUTION"
	envDisableMiddleware = "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE"
	envWorkspaces        = "MLFLOW_ENABLE_WORKSPACES"
	envWorkspaceStore    = "MLFLOW_WORKSPACE_STORE_URI"
	envAllowedHosts      = "MLFLOW_SERVER_ALLOWED_HOSTS"
	envInsecureTLS       = "MLFLOW_TRACKING_INSECURE_TLS"
)

var protectedEnv = map[string]bool{
	envBackendStore: true, envAuthorization: true, envJobExecution: true, envDisableMiddleware: true,
	envWorkspaces: true, envWorkspaceStore: true, envAllowedHosts: true, envInsecureTLS: true,
}

// serverEnv returns the environment of a server in this order: the variables of the operator, of spec.env, of the platform and of the CA
// bundle.
func serverEnv(m *mlflowv1.MLflow, in Inputs, s Server, caEnv []envVar) []envVar {
	before := []envVar{value(envDisableTelemetry, "true"), value(envJobExecution, "false")}
	if s.isTracking {
		before = append(before, archivalEnv(m)...)
	}
	before = slices.Concat(before, storeEnv(m), []envVar{
		value(envAuthorization, "self_subject_access_review"),
		value("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", strings.Join(allowedOrigins(m, in, s), ",")),
	}, selectorEnv(m))
	return mergeEnv(before, userEnv(m), slices.Concat(platformEnv(in), []envVar{value(envDisableMiddleware, "false")}, caEnv))
}

// userEnv returns spec.env with the default apiVersion of field references: fieldRef is an atomic field, which would otherwise differ from
// the stored one.
func userEnv(m *mlflowv1.MLflow) []envVar {
	user := resources.MustConvertEach[envVar](m.Spec.Env)
	for i := range user {
		if from := user[i].ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.APIVersion == nil {
			from.FieldRef.WithAPIVersion("v1")
		}
	}
	return user
}

// platformEnv sets the ciphers of the TLS profile, or on OpenShift those of the system policy.
func platformEnv(in Inputs) []envVar {
	ciphers := in.TLS.OpenSSL()
	if ciphers == "" && in.OpenShift {
		ciphers = "PROFILE=SYSTEM"
	}
	if ciphers == "" {
		return nil
	}
	return []envVar{value("UVICORN_SSL_CIPHERS", ciphers)}
}

// mergeEnv returns before, user and after. The last entry of the user for a name, unless it is protected, replaces all others.
func mergeEnv(before, user, after []envVar) []envVar {
	overridden := map[string]bool{}
	var effective []envVar
	for _, v := range slices.Backward(user) {
		if name := *v.Name; !protectedEnv[name] && !overridden[name] {
			overridden[name] = true
			effective = append(effective, v)
		}
	}
	slices.Reverse(effective)
	isOverridden := func(v envVar) bool { return overridden[*v.Name] }
	return slices.Concat(slices.DeleteFunc(slices.Clone(before), isOverridden), effective, slices.DeleteFunc(slices.Clone(after), isOverridden))
}

// selectorEnv returns the variable with spec.workspaceLabelSelector.
func selectorEnv(m *mlflowv1.MLflow) []envVar {
	if m.Spec.WorkspaceLabelSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(m.Spec.WorkspaceLabelSelector)
	utilruntime.Must(err) // Check has rejected invalid selectors
	if selector.Empty() {
		return nil
	}
	return []envVar{value("MLFLOW_K8S_WORKSPACE_LABEL_SELECTOR", selector.String())}
}

// allowedOrigins returns the CORS origins of a server: its Service names, localhost for port forwarding, ExternalURL and those of the spec.
func allowedOrigins(m *mlflowv1.MLflow, in Inputs, s Server) []string {
	host := s.host(in)
	origins := []string{
		fmt.Sprintf("https://%s:%d", s.Name, port),
		fmt.Sprintf("https://%s:%d", host, port),
		fmt.Sprintf("https://%s.cluster.local:%d", host, port),
		"localhost:*",
		"127.0.0.1:*",
	}
	if base, err := url.Parse(in.ExternalURL); err == nil && base.Scheme != "" && base.Host != "" {
		origins = append(origins, base.Scheme+"://"+base.Host)
	}
	for _, extra := range m.Spec.ExtraAllowedOrigins {
		if extra = strings.TrimSpace(extra); extra != "" && !strings.Contains(extra, ",") {
			origins = append(origins, extra)
		}
	}
	return origins
}

func value(name, text string) envVar {
	return envVar{Name: &name, Value: &text}
}
