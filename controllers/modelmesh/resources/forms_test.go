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

// acceptedDifferences are the fields by which the two forms may differ.
var acceptedDifferences = regexp.MustCompile(strings.Join([]string{
	`\.securityContext\.`,                       // M40
	`\.secret\.optional$`,                       // M39
	`\.env\[\d+\]\.(name|value)$`,               // M37, see below
	`\.nodeSelectorTerms\[\d+\]`,                // M4
	`\.template\.metadata\.labels\.app\.kubern`, // M38
}, "|"))

// Both forms of a runtime have the same containers, mounts and variables in the same order, except for acceptedDifferences.
func TestFormsDifferInAcceptedFieldsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInputs(t)
		current, original := renderedForm(t, in, Current), renderedForm(t, in, Legacy)
		if current == nil || original == nil {
			if (current == nil) != (original == nil) {
				t.Fatal("only one of the forms was rejected")
			}
			return
		}
		for _, d := range framework.Differences(framework.Leaves([]*unstructured.Unstructured{original}), framework.Leaves([]*unstructured.Unstructured{current}), defaultedFields) {
			if !acceptedDifferences.MatchString(d.Path) {
				t.Fatalf("%s differs from the recording: %s -> %s", d.Path, d.Recorded, d.Built)
			}
		}
		if diff := cmp.Diff(outline(t, original), outline(t, current)); diff != "" {
			t.Fatalf("-original +current:\n%s", diff)
		}
	})
}

// drawInputs draws a valid runtime and settings.
func drawInputs(t *rapid.T) RuntimeInputs {
	spec := runtimeSpec()
	for name, change := range kinds {
		if rapid.Bool().Draw(t, name) {
			change(spec)
		}
	}
	in := inputs(spec)
	for name, change := range surroundings {
		if rapid.Bool().Draw(t, name) {
			change(&in)
		}
	}
	if err := modelmesh.Validate(spec, in.Settings.BuiltInServerTypes); err != nil {
		t.Skip(err)
	}
	return in
}

var kinds = map[string]func(*v1alpha1.ServingRuntimeSpec){
	"adapter": withAdapter, "sockets": onSockets, "no puller": pullerless, "second": withExtraContainer("second"),
	"labels": func(s *v1alpha1.ServingRuntimeSpec) {
		s.Labels = map[string]string{LabelManagedBy: "me", LabelName: "x", "own": "1"}
	},
	"affinity": func(s *v1alpha1.ServingRuntimeSpec) { s.Affinity = required(term(expression("gpu", "yes"))) },
	"image":    func(s *v1alpha1.ServingRuntimeSpec) { s.Containers[0].Image = "host:5000/x:1" },
	"volume":   func(s *v1alpha1.ServingRuntimeSpec) { ownVolume("own")(s); ownMount("own", "/own")(s) },
	"user": func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(7))}
	},
}

var surroundings = map[string]func(*RuntimeInputs){
	"TLS": encrypted, "plain": plainMesh, "restricted": restricted, "OpenShift": onOpenShift, "claims": claiming("a", "b.c", "own"),
	"annotations": func(in *RuntimeInputs) { in.Annotations = map[string]string{annotationLoadingConcurrency: "2"} },
	"logging":     func(in *RuntimeInputs) { in.Settings.EnableAccessLogging = true },
}

func renderedForm(t *rapid.T, in RuntimeInputs, form Form) *unstructured.Unstructured {
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

// outline returns the names in a pod, in order.
func outline(t *rapid.T, u *unstructured.Unstructured) []string {
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range containers {
		container, _ := c.(map[string]any)
		all = append(all, container["name"].(string))
		for _, list := range []string{"env", "volumeMounts", "ports"} {
			items, _, err := unstructured.NestedSlice(container, list)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				name, _ := item.(map[string]any)["name"].(string)
				all = append(all, list+" "+name)
			}
		}
	}
	return all
}

// withText returns a runtime and settings with a text in each free-form field.
func withText(text string) RuntimeInputs {
	spec := runtimeSpec(withAdapter, ownVolume("own"), ownMount("own", "/own"), func(s *v1alpha1.ServingRuntimeSpec) {
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
	in := inputs(spec, encrypted)
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

// FuzzStringsKeepStructure checks that no text in a runtime or in the settings adds, removes or moves a field of its pods.
func FuzzStringsKeepStructure(f *testing.F) {
	for _, seed := range []string{
		"x", "a\nhostNetwork: true", "a\"\n  - --evil", "'{}'", "{{ .Values }}", "$(MM_LABELS)", "a: &b [*b]", "\x00\xff", "---\nkind: Pod", "a,b", "a|b", ":", "@", "/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = "x" + strings.ToValidUTF8(text, "")
		for form, change := range forms {
			shape := func(text string) []string {
				in := withText(text)
				change(&in)
				return slices.Sorted(maps.Keys(framework.Leaves([]*unstructured.Unstructured{buildDeploymentFor(t, in)})))
			}
			// An image without a tag gives no version to the adapter, and one more field.
			want, got := withoutVersion(shape("x")), withoutVersion(shape(text))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("form %s: %q changed the structure (-want +got):\n%s", form, text, diff)
			}
		}
	})
}

// versionValue matches the path of RUNTIME_VERSION of an adapter that is the third container.
var versionValue = regexp.MustCompile(`containers\[2\]\.env\[7\]\.value$`)

func withoutVersion(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return versionValue.MatchString(path) })
}
