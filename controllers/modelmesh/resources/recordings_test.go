package resources

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// Each file of testdata/recordings contains a runtime, the settings unless they are the defaults, and the objects that the legacy
// controller created in the namespace, as the API server of Kubernetes 1.36.3 returned them.

// defaultedFields matches fields that builders may omit, because the API server sets them.
var defaultedFields = regexp.MustCompile(strings.Join([]string{
	`^Deployment/.*\.spec\.(progressDeadlineSeconds|revisionHistoryLimit|strategy\.type)$`,
	`^Deployment/.*\.template\.spec\.(dnsPolicy|restartPolicy|schedulerName|serviceAccount)$`,
	`^Deployment/.*\.(imagePullPolicy|terminationMessagePath|terminationMessagePolicy|successThreshold|scheme|defaultMode)$`,
	`^Deployment/.*\.valueFrom\.(fieldRef\.apiVersion|resourceFieldRef\.divisor)$`,
	`^Deployment/.*Probe\.(failureThreshold|timeoutSeconds)$`,
	`^Service/.*\.spec\.(clusterIPs?|internalTrafficPolicy|ipFamil.*|sessionAffinity|type)(\[0\])?$`,
	`^HorizontalPodAutoscaler/.*\.behavior\..*$`,
	`^Secret/.*\.type$`,
}, "|"))

// acceptedDifference is an intended difference from the legacy controller, with its reason.
type acceptedDifference struct {
	path   *regexp.Regexp
	reason string
}

var (
	inBothForms = []acceptedDifference{
		{regexp.MustCompile(`\.metadata\.labels\.platform\.opendatahub\.io/(operator|component)$`), "labels of all objects of this operator"},
		{regexp.MustCompile(`^Deployment/.*\.metadata\.annotations\.manifestival$`), "annotation of the client-side merge of the legacy controller"},
		{regexp.MustCompile(`^ServiceMonitor/.*\.bearerTokenSecret\.(key|name)$`), "empty fields of the client library"},
		{regexp.MustCompile(`^Secret/.*\.data\.etcd_connection$`), "masked in the recording; TestCopy checks it"},
	}
	inCurrentForm = []acceptedDifference{
		{regexp.MustCompile(`^Deployment/.*\.template\.spec\.securityContext\.seccompProfile\.type$`), "[M40] Pod Security"},
		{regexp.MustCompile(`^Deployment/.*\.containers\[\d\]\.securityContext\.`), "[M40] Pod Security"},
		{regexp.MustCompile(`^Deployment/.*\.secret\.optional$`), "[M39] pods start without credentials"},
		{regexp.MustCompile(`^Deployment/.*-triton-c\.spec\..*(does-not-exist|pvc_mounts|claimName|volumes\[|volumeMounts\[)`), "[M39] a missing claim does not prevent pods from starting"},
	}
)

type recording struct {
	name    string
	in      RuntimeInputs
	objects []*unstructured.Unstructured
}

func recordings(t *testing.T) []recording {
	t.Helper()
	files, err := filepath.Glob("testdata/recordings/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var list []recording
	for _, file := range files {
		objects, err := framework.ReadObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		r := recording{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), objects: objects[1:]}
		servingRuntime := decode[v1alpha1.ServingRuntime](t, objects[0])
		settings := meshsettings.Default()
		if r.objects[0].GetName() == "model-serving-config" {
			yaml, _, _ := unstructured.NestedString(r.objects[0].Object, "data", "config.yaml")
			if settings, _, err = meshsettings.Read(settings, yaml); err != nil {
				t.Fatal(err)
			}
			r.objects = r.objects[1:]
		}
		r.in = RuntimeInputs{
			NamespaceInputs: NamespaceInputs{Namespace: servingRuntime.Namespace, Settings: settings},
			Name:            servingRuntime.Name, Annotations: servingRuntime.Annotations, Spec: &servingRuntime.Spec,
		}
		if name := settings.TLS.SecretName; name != "" {
			r.in.TLS = &TLSInputs{SecretName: name, HasCA: true}
		}
		list = append(list, r)
	}
	return list
}

// setNamespaceState sets the form, and the inputs that depend on the models and claims in the namespace of a recording.
func (r *recording) setNamespaceState(form Form) {
	r.in.Form = form
	needed := r.name != "builtin-triton-scaled-to-zero"
	scale, _ := modelmesh.ParseAutoscaling(r.in.Annotations)
	d := DecideReplicas(ReplicaInputs{
		SpecReplicas: r.in.Spec.Replicas, PodsPerRuntime: r.in.Settings.PodsPerRuntime, ScaleToZero: r.in.Settings.ScaleToZero, Autoscale: scale, Needed: needed,
	})
	r.in.Replicas = &d.Count
	if r.name != "claims-and-inferenceservice" {
		return
	}
	model := modelmesh.Model{Spec: v1alpha1.PredictorSpec{
		ModelType: v1alpha1.ModelType{Name: "onnx", Version: new("1")},
		Storage:   &v1alpha1.Storage{Path: new("models/a.onnx"), Parameters: map[string]string{"type": "pvc", "name": "any-shelf"}},
	}}
	r.in.Claims, _ = Claims(ClaimInputs{
		Form: form, FromSecret: []string{"shelf", "does-not-exist"}, AllowAny: r.in.Settings.AllowAnyPVC, Models: []modelmesh.Model{model},
		Labels: modelmesh.Labels(r.in.Name, r.in.Spec, true), Exists: func(claim string) bool { return claim != "does-not-exist" },
	})
}

// buildObjects builds the objects of a recording.
func (r *recording) buildObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	in := NamespaceInputs{Namespace: r.in.Namespace, Settings: r.in.Settings, TLS: r.in.TLS}
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.UID = r.in.Namespace, "7f0c2f5e-0000-4000-8000-000000000002"
	service := &corev1.Service{}
	service.Name, service.Namespace, service.UID = in.Settings.ServiceName, r.in.Namespace, "7f0c2f5e-0000-4000-8000-000000000003"
	owner := servingRuntime(r.in)
	constraints := BuildConstraints(r.in.Namespace, map[string]*v1alpha1.ServingRuntimeSpec{r.in.Name: r.in.Spec}, r.in.Settings.RESTProxy.Enabled)
	objects := []*unstructured.Unstructured{
		buildDeploymentFor(t, r.in),
		renderObject(t, namespace, apply.Object{Config: BuildService(in)}),
		renderObject(t, namespace, apply.Object{Config: constraints, Ownership: apply.Unowned}),
	}
	if ServiceMonitorEnabled(in.Settings) {
		objects = append(objects, renderObject(t, service, apply.Object{Config: BuildServiceMonitor(in)}))
	}
	if scale, _ := modelmesh.ParseAutoscaling(r.in.Annotations); scale.Enabled {
		objects = append(objects, renderObject(t, owner, apply.Object{Config: BuildAutoscaler(r.in, owner.Labels, scale)}))
	}
	if r.in.Namespace != "modelmesh-serving" {
		data, err := meshetcd.Copy(map[string][]byte{meshetcd.ConnectionKey: []byte(`{"endpoints":"http://10.0.0.10:2379","root_prefix":"modelmesh-serving"}`)}, "modelmesh-serving", r.in.Namespace, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, renderObject(t, namespace, apply.Object{Config: BuildEtcdSecret(in.Settings.EtcdSecretName, r.in.Namespace, data), Ownership: apply.Unowned}))
	}
	return objects
}

// TestRecordings compares built objects with those of the legacy controller, field by field, in both forms. [modelmesh-31]
func TestRecordings(t *testing.T) {
	for form, accepted := range map[Form][]acceptedDifference{Legacy: inBothForms, Current: slices.Concat(inBothForms, inCurrentForm)} {
		matched := map[int]bool{}
		for _, r := range recordings(t) {
			t.Run(fmt.Sprintf("%s in form %d", r.name, form), func(t *testing.T) {
				r.setNamespaceState(form)
				for _, d := range framework.Differences(framework.Leaves(r.objects), framework.Leaves(r.buildObjects(t)), defaultedFields) {
					index := slices.IndexFunc(accepted, func(a acceptedDifference) bool { return a.path.MatchString(d.Path) })
					if index < 0 {
						t.Errorf("%s differs from the recording: %s -> %s", d.Path, d.Recorded, d.Built)
					}
					matched[index] = true
				}
			})
		}
		for i, a := range accepted {
			if !matched[i] {
				t.Errorf("no recording differs in %s in form %d: remove it from the accepted differences", a.path, form)
			}
		}
	}
}
