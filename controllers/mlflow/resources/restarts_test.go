package resources

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/apifields"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// specChanges maps a field of the spec to a function that changes it.
var specChanges = map[string]func(*mlflowv1.MLflowSpec){
	"resources": func(s *mlflowv1.MLflowSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: mlflowtest.StorageRequest("7Gi")}
	},
	"serviceAccountName":         func(s *mlflowv1.MLflowSpec) { s.ServiceAccountName = "other" },
	"serviceAccountAnnotations":  func(s *mlflowv1.MLflowSpec) { s.ServiceAccountAnnotations = map[string]string{"a": "b"} },
	"imagePullSecrets":           func(s *mlflowv1.MLflowSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}} },
	"readReplicaBackendStoreUri": func(s *mlflowv1.MLflowSpec) { s.ReadReplicaBackendStoreURI = "postgresql://replica/mlflow" },
	"artifactsDestination":       func(s *mlflowv1.MLflowSpec) { s.ServeArtifacts, s.ArtifactsDestination = true, "s3://bucket/other" },
	"defaultArtifactRoot":        func(s *mlflowv1.MLflowSpec) { s.DefaultArtifactRoot = "s3://bucket/root" },
	"serveArtifacts":             func(s *mlflowv1.MLflowSpec) { s.ServeArtifacts = !s.ServeArtifacts },
	"workers":                    func(s *mlflowv1.MLflowSpec) { s.Workers = new(int32(3)) },
	"extraAllowedOrigins":        func(s *mlflowv1.MLflowSpec) { s.ExtraAllowedOrigins = []string{"https://a.example.com"} },
	"allowedHosts":               func(s *mlflowv1.MLflowSpec) { s.AllowedHosts = []mlflowv1.AllowedHost{"a.example.com"} },
	"workspaceLabelSelector": func(s *mlflowv1.MLflowSpec) {
		s.WorkspaceLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	},
	"env":            func(s *mlflowv1.MLflowSpec) { s.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} },
	"podLabels":      func(s *mlflowv1.MLflowSpec) { s.PodLabels = map[string]string{"a": "b"} },
	"podAnnotations": func(s *mlflowv1.MLflowSpec) { s.PodAnnotations = map[string]string{"a": "b"} },
	"podSecurityContext": func(s *mlflowv1.MLflowSpec) {
		s.PodSecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(5))}
	},
	"securityContext": func(s *mlflowv1.MLflowSpec) { s.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(5))} },
	"nodeSelector":    func(s *mlflowv1.MLflowSpec) { s.NodeSelector = map[string]string{"a": "b"} },
	"tolerations": func(s *mlflowv1.MLflowSpec) {
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	},
	"affinity": func(s *mlflowv1.MLflowSpec) { s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}} },
	"resourceClaims": func(s *mlflowv1.MLflowSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
	},
	"networkPolicyEgressRules": func(s *mlflowv1.MLflowSpec) { s.NetworkPolicyEgressRules = []networkingv1.NetworkPolicyEgressRule{{}} },
	"networkPolicyAdditionalEgressRules": func(s *mlflowv1.MLflowSpec) {
		s.NetworkPolicyAdditionalEgressRules = []networkingv1.NetworkPolicyEgressRule{{}}
	},
	"networkPolicyIngressFrom": func(s *mlflowv1.MLflowSpec) { s.NetworkPolicyIngressFrom = []networkingv1.NetworkPolicyPeer{{}} },
	"garbageCollection":        mlflowtest.WithGarbageCollection,
	"traceArchival":            mlflowtest.WithTraceArchival,
}

// If the description of a field states whether a change restarts the server pods, the pod template agrees.
func TestDescriptionsOfRestarts(t *testing.T) {
	var described []string
	for _, field := range apifields.Read(t, "../../../apis/mlflow/v1/mlflow_types.go", "MLflowSpec") {
		name := field.Name
		restarts := regexp.MustCompile(`A change restarts the server pods\b`).MatchString(field.Comment)
		if !restarts && !strings.Contains(field.Comment, "A change does not restart") {
			continue
		}
		described = append(described, name)
		change := specChanges[name]
		if change == nil {
			t.Errorf("specChanges has no change for %s", name)
			continue
		}
		before := deploymentOf(t, mlflowtest.MLflow(), platformInputs["plain"]).Spec.Template
		after := deploymentOf(t, mlflowtest.MLflow(change), platformInputs["plain"]).Spec.Template
		if changed := !reflect.DeepEqual(before, after); changed != restarts {
			t.Errorf("a change of %s changes the pod template: %t, but its description states %t", name, changed, restarts)
		}
	}
	for name := range specChanges {
		if !slices.Contains(described, name) {
			t.Errorf("the description of %s does not state whether a change restarts pods", name)
		}
	}
}
