package takeover

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// liveTemplate returns a pod template with defaults of the API server and fields of other clients.
func liveTemplate() *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	t.Labels = map[string]string{"name": "modelmesh-serving-r", "foreign": "x"}
	t.Spec.RestartPolicy = corev1.RestartPolicyAlways
	t.Spec.TerminationGracePeriodSeconds = new(int64(90))
	t.Spec.Tolerations = []corev1.Toleration{{Key: "gpu"}}
	t.Spec.Containers = []corev1.Container{
		{
			Name: "mm", Image: "mm:1", ImagePullPolicy: corev1.PullIfNotPresent,
			Args:         []string{"a", "b"},
			Env:          []corev1.EnvVar{{Name: "MM_SERVICE_NAME", Value: "modelmesh-serving"}, {Name: "MM_PAYLOAD_PROCESSORS", Value: "http://foreign"}},
			Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Ports:        []corev1.ContainerPort{{Name: "grpc", ContainerPort: 8033, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: "tc-config", MountPath: "/etc/watson/mmesh/config"}, {Name: "foreign", MountPath: "/etc/foreign"}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8089), Scheme: corev1.URISchemeHTTP}},
				SuccessThreshold: 1},
		},
		{Name: "foreign", Image: "x"},
	}
	return t
}

// [M40] Defaults and additional fields of the live template are ignored.
func TestTemplateContains(t *testing.T) {
	container := func(fields string) string {
		return `{"spec":{"containers":[{"name":"mm","image":"mm:1"` + fields + `}]}}`
	}
	for name, tc := range map[string]struct {
		desired string
		want    bool
	}{
		"empty template":                    {`{}`, true},
		"labels":                            {`{"metadata":{"labels":{"name":"modelmesh-serving-r"}}}`, true},
		"another label":                     {`{"metadata":{"labels":{"name":"modelmesh-serving-r","more":"x"}}}`, false},
		"annotation":                        {`{"metadata":{"annotations":{"more":"x"}}}`, false},
		"container":                         {container(``), true},
		"another image":                     {`{"spec":{"containers":[{"name":"mm","image":"mm:2"}]}}`, false},
		"another container":                 {`{"spec":{"containers":[{"name":"mm","image":"mm:1"},{"name":"puller","image":"p"}]}}`, false},
		"same quantity":                     {container(`,"resources":{"limits":{"cpu":"1000m"}}`), true},
		"another quantity":                  {container(`,"resources":{"limits":{"cpu":"1001m"}}`), false},
		"env":                               {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"modelmesh-serving"}]`), true},
		"env with another value":            {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"other"}]`), false},
		"missing env":                       {container(`,"env":[{"name":"MM_LABELS","value":""}]`), false},
		"mount":                             {container(`,"volumeMounts":[{"name":"tc-config","mountPath":"/etc/watson/mmesh/config"}]`), true},
		"mount of another volume":           {container(`,"volumeMounts":[{"name":"other","mountPath":"/etc/watson/mmesh/config"}]`), false},
		"port":                              {container(`,"ports":[{"name":"grpc","containerPort":8033}]`), true},
		"port without a name":               {container(`,"ports":[{"containerPort":8033}]`), true},
		"another port":                      {container(`,"ports":[{"containerPort":8034}]`), false},
		"args":                              {container(`,"args":["a","b"]`), true},
		"fewer args":                        {container(`,"args":["a"]`), false},
		"probe":                             {container(`,"readinessProbe":{"httpGet":{"path":"/ready","port":8089}}`), true},
		"another probe":                     {container(`,"readinessProbe":{"httpGet":{"path":"/ready","port":"grpc"}}`), false},
		"security context of this operator": {container(`,"securityContext":{"runAsNonRoot":true}`), false},
		"grace period":                      {`{"spec":{"terminationGracePeriodSeconds":90}}`, true},
		"another grace period":              {`{"spec":{"terminationGracePeriodSeconds":30}}`, false},
		"tolerations":                       {`{"spec":{"tolerations":[{"key":"gpu"}]}}`, true},
		"another toleration":                {`{"spec":{"tolerations":[{"key":"cpu"}]}}`, false},
		"another volume":                    {`{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := templateContains(rawJSON(tc.desired), liveTemplate())
			if err != nil || got != tc.want {
				t.Errorf("templateContains returned %t, error %v, want %t", got, err, tc.want)
			}
		})
	}
	if _, err := templateContains(rawJSON(`{"spec":{"containers":[{"resources":{"limits":{"cpu":"many"}}}]}}`), liveTemplate()); err == nil {
		t.Error("templateContains accepted an invalid pod template")
	}
	if _, err := templateContains(func() {}, liveTemplate()); err == nil {
		t.Error("templateContains accepted a template that cannot be encoded")
	}
}

// rawJSON is a JSON document that encodes to itself.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// [M34] [O4] Only the NetworkPolicy of the legacy installation is adopted, and no object that only this operator creates.
func TestAdoptsGuardsOfLegacyInstallation(t *testing.T) {
	desired := apply.Desired{
		{Config: networkingv1ac.NetworkPolicy(resources.PolicyName, "ns")}, {Config: corev1ac.ConfigMap(authproxy.RulesConfigMap, "ns")},
		{Config: corev1ac.Secret(authproxy.CookieSecret, "ns")},
	}
	(&takeOver{}).Adopt(nil, desired)
	policyFor := func(labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"podSelector": map[string]any{"matchLabels": labels}}}}
	}
	legacyLabels := map[string]any{resources.LabelManagedBy: resources.ControllerName}
	if adoptIf := desired[0].AdoptIf; !adoptIf(policyFor(legacyLabels)) || adoptIf(policyFor(map[string]any{"app": "other"})) {
		t.Error("AdoptIf must return true for the policy of the legacy installation only")
	}
	for _, o := range desired[1:] {
		if o.AdoptIf != nil {
			t.Errorf("%s is adopted", o.Key().Name)
		}
	}
}

// An object of which a legacy controller wrote only the status is not adopted.
func TestIsWrittenByLegacyController(t *testing.T) {
	object := &unstructured.Unstructured{}
	for subresource, want := range map[string]bool{"": true, "status": false} {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: LegacyManager, Subresource: subresource}})
		if got := isWrittenByLegacyController(object); got != want {
			t.Errorf("subresource %q: got %t, want %t", subresource, got, want)
		}
	}
}

// fakeManager is the manager of TestSetup.
type fakeManager struct {
	ctrl.Manager
	added []manager.Runnable
}

func (*fakeManager) GetAPIReader() client.Reader { return nil }
func (*fakeManager) GetLogger() logr.Logger      { return logr.Discard() }
func (m *fakeManager) Add(r manager.Runnable) error {
	m.added = append(m.added, r)
	return nil
}

// Adopted objects lose the annotations and the fields of the legacy controllers, except that Routes keep the fields.
func TestSetup(t *testing.T) {
	mgr, shared := &fakeManager{}, &modelmesh.Dependencies{Options: modelmesh.Options{Applier: apply.New(apply.Options{FieldOwner: modelmesh.FieldOwner})}}
	if err := Setup(t.Context(), mgr, shared); err != nil || len(mgr.added) != 1 || shared.TakeOver == nil {
		t.Fatalf("Setup returned %v, and added %d Runnables and take-over %v", err, len(mgr.added), shared.TakeOver)
	}
	for name, tc := range map[string]struct {
		applier  *apply.Applier
		managers []string
	}{"Applier": {shared.Applier, []string{LegacyManager}}, "RouteApplier": {shared.RouteApplier, nil}} {
		if !slices.Equal(tc.applier.LegacyManagers, tc.managers) || len(tc.applier.StripAnnotations) != 2 || tc.applier.FieldOwner != modelmesh.FieldOwner {
			t.Errorf("%s: unexpected options %+v", name, tc.applier.Options)
		}
	}
}
