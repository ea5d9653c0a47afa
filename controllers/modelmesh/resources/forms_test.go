package resources

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// acceptedDifferences matches the fields that can differ between the two forms.
var acceptedDifferences = regexp.MustCompile(strings.Join([]string{
	`\.securityContext\.`,                       // M40
	`\.secret\.optional$`,                       // M39
	`\.env\[\d+\]\.(name|value)$`,               // M37: RUNTIME_VERSION
	`\.nodeSelectorTerms\[\d+\]`,                // M4
	`\.template\.metadata\.labels\.app\.kubern`, // M38
}, "|"))

// Both forms of a runtime have the same fields, except for acceptedDifferences, and the same names in the same order.
func TestFormsDifferInAcceptedFieldsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInputs(t)
		current, legacy := renderForm(t, in, Current), renderForm(t, in, Legacy)
		if current == nil || legacy == nil {
			if (current == nil) != (legacy == nil) {
				t.Fatal("only one of the forms was rejected")
			}
			return
		}
		for _, d := range framework.Differences(framework.Leaves([]*unstructured.Unstructured{legacy}), framework.Leaves([]*unstructured.Unstructured{current}), defaultedFields) {
			if !acceptedDifferences.MatchString(d.Path) {
				t.Fatalf("%s differs: legacy %s, current %s", d.Path, d.Recorded, d.Built)
			}
		}
		if diff := cmp.Diff(namesInPod(t, legacy), namesInPod(t, current)); diff != "" {
			t.Fatalf("-legacy +current:\n%s", diff)
		}
	})
}

// drawInputs draws a valid runtime and settings.
func drawInputs(t *rapid.T) RuntimeInputs {
	spec := runtimeSpec()
	for name, change := range specChanges {
		if rapid.Bool().Draw(t, name) {
			change(spec)
		}
	}
	in := inputs(spec)
	for name, change := range inputChanges {
		if rapid.Bool().Draw(t, name) {
			change(&in)
		}
	}
	if err := modelmesh.Validate(spec, in.Settings.BuiltInServerTypes); err != nil {
		t.Skip(err)
	}
	return in
}

var specChanges = map[string]func(*v1alpha1.ServingRuntimeSpec){
	"adapter": withAdapter, "sockets": withSockets, "no puller": withoutPuller, "second": withExtraContainer("second"),
	"labels": func(s *v1alpha1.ServingRuntimeSpec) {
		s.Labels = map[string]string{LabelManagedBy: "other", LabelName: "x", "own": "1"}
	},
	"affinity": func(s *v1alpha1.ServingRuntimeSpec) { s.Affinity = required(term(expression("gpu", "yes"))) },
	"image":    func(s *v1alpha1.ServingRuntimeSpec) { s.Containers[0].Image = "host:5000/x:1" },
	"volume":   func(s *v1alpha1.ServingRuntimeSpec) { withVolume("own")(s); withMount("own", "/own")(s) },
	"user": func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(7))}
	},
}

var inputChanges = map[string]func(*RuntimeInputs){
	"TLS": withTLS, "plain": withoutRESTAndMetrics, "restricted": restricted, "OpenShift": onOpenShift, "claims": withClaims("a", "b.c", "own"),
	"annotations": func(in *RuntimeInputs) { in.Annotations = map[string]string{annotationLoadingConcurrency: "2"} },
	"logging":     func(in *RuntimeInputs) { in.Settings.EnableAccessLogging = true },
}

func renderForm(t *rapid.T, in RuntimeInputs, form Form) *unstructured.Unstructured {
	in.Form = form
	d, err := BuildDeployment(in)
	if err != nil {
		return nil
	}
	objects, err := apply.Render(apply.Desired{{Config: d.Config}}, componentName, servingRuntime(in))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

// namesInPod returns the names of containers, variables, mounts and ports, in order.
func namesInPod(t *rapid.T, u *unstructured.Unstructured) []string {
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range containers {
		container, _ := c.(map[string]any)
		names = append(names, container["name"].(string))
		for _, list := range []string{"env", "volumeMounts", "ports"} {
			items, _, err := unstructured.NestedSlice(container, list)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				name, _ := item.(map[string]any)["name"].(string)
				names = append(names, list+" "+name)
			}
		}
	}
	return names
}

// inputsWithText returns inputs with the given text in free-form fields of the runtime and of the settings.
func inputsWithText(text string) RuntimeInputs {
	spec := runtimeSpec(withAdapter, withVolume("own"), withMount("own", "/own"), func(s *v1alpha1.ServingRuntimeSpec) {
		c := &s.Containers[0]
		c.Image, c.Args, c.Command, c.WorkingDir = text, []string{text}, []string{text}, text
		c.Env = []corev1.EnvVar{{Name: "A", Value: text}}
		s.BuiltInAdapter.Env = []corev1.EnvVar{{Name: "B", Value: text}}
		s.Labels, s.Annotations, s.NodeSelector = map[string]string{"k": text}, map[string]string{"k": text}, map[string]string{"k": text}
		s.Tolerations = []corev1.Toleration{{Key: text, Value: text}}
		s.SupportedModelFormats = []v1alpha1.SupportedModelFormat{{Name: text, Version: &text, AutoSelect: new(true)}}
		s.ProtocolVersions = []string{text}
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "z" + text}}
	})
	in := inputs(spec, withTLS)
	in.Annotations = map[string]string{annotationLoadingConcurrency: text, annotationPerModelConcurrency: text}
	in.Settings.PayloadProcessors = []string{text}
	in.Settings.ModelMeshImage = meshsettings.Image{Name: text}
	in.Settings.StorageHelper.Image, in.Settings.StorageHelper.Command = meshsettings.Image{Name: text}, []string{text}
	in.Settings.RESTProxy.Image = meshsettings.Image{Name: text}
	in.Settings.InternalModelMeshEnvVars = []corev1.EnvVar{{Name: "C", Value: text}}
	in.Settings.RuntimePodLabels, in.Settings.RuntimePodAnnotations = map[string]string{"j": text}, map[string]string{"j": text}
	in.Settings.ServiceAccountName, in.Settings.StorageSecretName, in.Settings.EtcdSecretName = text, text, text
	in.Settings.Metrics.Scheme, in.Settings.TLS.ClientAuth, in.TLS.SecretName = text, text, text
	return in
}

// FuzzStringsKeepStructure checks that no text in a runtime or in the settings adds or removes a field of the Deployment.
func FuzzStringsKeepStructure(f *testing.F) {
	for _, seed := range []string{
		"x", "a\nhostNetwork: true", "a\"\n  - --evil", "'{}'", "{{ .Values }}", "$(MM_LABELS)", "a: &b [*b]", "\x00\xff", "---\nkind: Pod", "a,b", "a|b", ":", "@", "/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = "x" + strings.ToValidUTF8(text, "")
		for form, change := range forms {
			paths := func(text string) []string {
				in := inputsWithText(text)
				change(&in)
				return slices.Sorted(maps.Keys(framework.Leaves([]*unstructured.Unstructured{buildDeploymentFor(t, in)})))
			}
			// For an image without a tag, RUNTIME_VERSION has no value.
			want, got := withoutVersion(paths("x")), withoutVersion(paths(text))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("form %s: %q changed the structure (-want +got):\n%s", form, text, diff)
			}
		}
	})
}

// versionValue matches the path of RUNTIME_VERSION if the adapter is the third container.
var versionValue = regexp.MustCompile(`containers\[2\]\.env\[7\]\.value$`)

func withoutVersion(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return versionValue.MatchString(path) })
}
