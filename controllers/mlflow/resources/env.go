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
	envTelemetry = "MLFLOW_DISABLE_TELEMETRY"
	// workspaceStore makes the namespaces of the cluster the workspaces.
	workspaceStore = "kubernetes://"
)

type envVar = corev1ac.EnvVarApplyConfiguration

// Variables that a user may not set: they decide who is authorized and where,
// which database is migrated and served, or what TLS is worth. The schema
// refuses them; objects stored before it did keep working, with the value of
// the operator, or without the name where that sets none.
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

// serverEnv is the environment of a server: what MLflow needs, what the user
// wants, and what platform and certificates ask for, in this order.
func serverEnv(m *mlflowv1.MLflow, in Inputs, s Server, certificates []envVar) []envVar {
	before := []envVar{value(envTelemetry, "true"), value(envJobExecution, "false")}
	if s.tracking {
		before = append(before, archivalEnv(m)...)
	}
	before = slices.Concat(before, storeEnv(m), []envVar{
		value(envAuthorization, "self_subject_access_review"),
		value("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", strings.Join(allowedOrigins(m, in, s), ",")),
	}, selectorEnv(m))
	return mergeEnv(before, userEnv(m), slices.Concat(platformEnv(in), []envVar{value(envDisableMiddleware, "false")}, certificates))
}

// userEnv is spec.env. The default of a reference that is written as one value,
// and would otherwise differ from what is stored, is spelled out.
func userEnv(m *mlflowv1.MLflow) []envVar {
	user := resources.MustApplyEach[envVar](m.Spec.Env)
	for i := range user {
		if from := user[i].ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.APIVersion == nil {
			from.FieldRef.WithAPIVersion("v1")
		}
	}
	return user
}

// platformEnv makes the server offer the ciphers of the TLS profile, or else those of the policy of the image.
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

// mergeEnv puts the entries of the user between ours so that every name occurs
// once. The user wins, the last of several entries of a user holds, and
// protected names stay ours.
func mergeEnv(before, user, after []envVar) []envVar {
	last := map[string]int{}
	for i := range user {
		if name := *user[i].Name; !protectedEnv[name] {
			last[name] = i
		}
	}
	ours := func(entries []envVar) []envVar {
		return slices.DeleteFunc(slices.Clone(entries), func(e envVar) bool {
			_, overridden := last[*e.Name]
			return overridden
		})
	}
	var theirs []envVar
	for i := range user {
		if at, found := last[*user[i].Name]; found && at == i {
			theirs = append(theirs, user[i])
		}
	}
	return slices.Concat(ours(before), theirs, ours(after))
}

// selectorEnv limits the workspaces, if the spec does, with the selector in the notation of the API.
func selectorEnv(m *mlflowv1.MLflow) []envVar {
	if m.Spec.WorkspaceLabelSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(m.Spec.WorkspaceLabelSelector)
	utilruntime.Must(err) // see Check
	if selector.Empty() {
		return nil
	}
	return []envVar{value("MLFLOW_K8S_WORKSPACE_LABEL_SELECTOR", selector.String())}
}

// allowedOrigins lists from where browsers may call a server: its own names,
// a forwarded port, the gateway, and what the spec adds.
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
