package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// FuzzStringsKeepStructure checks that no string in a spec adds, removes or moves a field of an object: only values differ. [D6]
func FuzzStringsKeepStructure(f *testing.F) {
	for _, seed := range []string{
		"", "x", "a\nhostNetwork: true", "a\"\n  - --evil", "'{}'", "{{ .Values }}", "$(PATH)", "a: &b [*b]", "\x00\xff", "---\nkind: Pod", "a b\tc", "<script>", "ü",
	} {
		f.Add(seed)
	}
	want := objectPaths(f, "plain")
	f.Fuzz(func(t *testing.T, text string) {
		if diff := firstDifference(want, objectPaths(t, text)); diff != "" {
			t.Errorf("%q changed the structure: %s", text, diff)
		}
	})
}

// objectPaths builds the objects of an MLflow with the text in its string fields, and returns the path and type of every field.
func objectPaths(t testing.TB, text string) []string {
	t.Helper()
	text = "x" + strings.ReplaceAll(text, ",", ";") // an origin with a comma is ignored
	readable := strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || unicode.IsSpace(r) {
			return r
		}
		return -1 // Check rejects it in the archival configuration
	}, text)
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		*s = mlflowv1.MLflowSpec{
			Image:                      &mlflowv1.ImageConfig{Image: text, ImagePullPolicy: corev1.PullPolicy(text)},
			ServiceAccountName:         text,
			BackendStoreURI:            "sqlite:" + text, // adds no egress port
			ReadReplicaBackendStoreURI: "sqlite:" + text,
			RegistryStoreURIFrom:       secretKey(text, text),
			ServeArtifacts:             true,
			ArtifactsDestination:       "s3://" + text, // not a local path
			DefaultArtifactRoot:        "s3://" + text,
			ExtraAllowedOrigins:        []string{text},
			AllowedHosts:               []mlflowv1.AllowedHost{mlflowv1.AllowedHost(text)},
			ServiceAccountAnnotations:  map[string]string{"own": text},
			ImagePullSecrets:           []corev1.LocalObjectReference{{Name: text}},
			NetworkPolicyIngressFrom:   []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: text}}},
			WorkspaceLabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
			Env:                        []corev1.EnvVar{{Name: text, Value: text}},
			EnvFrom:                    []corev1.EnvFromSource{{Prefix: text, SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: text}}}},
			PodLabels:                  map[string]string{"own": text},
			PodAnnotations:             map[string]string{"own": text},
			NodeSelector:               map[string]string{"own": text},
			Tolerations:                []corev1.Toleration{{Key: text, Value: text}},
			CABundleConfigMap:          &mlflowv1.CABundleConfigMapRef{Name: text},
			GarbageCollection:          &mlflowv1.GarbageCollectionConfig{Schedule: mlflowv1.CronSchedule(text), OlderThan: text},
			TraceArchival: &mlflowv1.TraceArchivalConfig{
				Enabled: true, Schedule: mlflowv1.CronSchedule(text), Location: "s3://" + readable, Retention: readable, LongRetentionAllowlist: []string{readable},
			},
			Storage: &corev1.PersistentVolumeClaimSpec{StorageClassName: &text, VolumeName: text},
		}
	})
	in := with(platformInputs["openshift"], func(in *Inputs) {
		in.SectionTitle, in.GatewayName, in.GatewayNamespace, in.ExternalURL = text, text, text, text
	})
	var all []string
	for _, o := range buildObjects(t, m, in) {
		all = append(all, fieldPaths(o.GetKind(), o.Object)...)
		if file, found, _ := unstructured.NestedString(o.Object, "data", archivalFile); found {
			var content any
			if err := yaml.Unmarshal([]byte(file), &content); err != nil {
				t.Fatalf("reading the archival configuration: %v", err)
			}
			all = append(all, fieldPaths(archivalFile, content)...)
		}
	}
	return all
}

func fieldPaths(path string, value any) []string {
	var paths []string
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			paths = append(paths, fieldPaths(path+"."+key, child)...)
		}
		slices.Sort(paths)
	case []any:
		for i, child := range v {
			paths = append(paths, fieldPaths(fmt.Sprintf("%s[%d]", path, i), child)...)
		}
	default:
		paths = []string{fmt.Sprintf("%s %T", path, v)}
	}
	return paths
}

func firstDifference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			return fmt.Sprintf("want %s, got %s", elementOrNothing(want, i), elementOrNothing(got, i))
		}
	}
	return ""
}

func elementOrNothing(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}
