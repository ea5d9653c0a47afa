package modelmesh

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// liveTemplate is a pod template as the API server stores it: with defaults, and with what third parties added.
func liveTemplate() *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	t.Labels = map[string]string{"name": "modelmesh-serving-r", "theirs": "x"}
	t.Spec.RestartPolicy = corev1.RestartPolicyAlways
	t.Spec.TerminationGracePeriodSeconds = new(int64(90))
	t.Spec.Tolerations = []corev1.Toleration{{Key: "gpu"}}
	t.Spec.Containers = []corev1.Container{
		{
			Name: "mm", Image: "mm:1", ImagePullPolicy: corev1.PullIfNotPresent,
			Args:         []string{"a", "b"},
			Env:          []corev1.EnvVar{{Name: "MM_SERVICE_NAME", Value: "modelmesh-serving"}, {Name: "MM_PAYLOAD_PROCESSORS", Value: "http://theirs"}},
			Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Ports:        []corev1.ContainerPort{{Name: "grpc", ContainerPort: 8033, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: "tc-config", MountPath: "/etc/watson/mmesh/config"}, {Name: "theirs", MountPath: "/etc/theirs"}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8089), Scheme: corev1.URISchemeHTTP}},
				SuccessThreshold: 1},
		},
		{Name: "theirs", Image: "x"},
	}
	return t
}

// [M40] What third parties and defaults added keeps nobody from finding that a template is already there; every other difference does.
func TestHolds(t *testing.T) {
	container := func(fields string) string {
		return `{"spec":{"containers":[{"name":"mm","image":"mm:1"` + fields + `}]}}`
	}
	for name, tc := range map[string]struct {
		want string
		is   bool
	}{
		"nothing":                  {`{}`, true},
		"labels":                   {`{"metadata":{"labels":{"name":"modelmesh-serving-r"}}}`, true},
		"another label":            {`{"metadata":{"labels":{"name":"modelmesh-serving-r","more":"x"}}}`, false},
		"an annotation":            {`{"metadata":{"annotations":{"more":"x"}}}`, false},
		"the container":            {container(``), true},
		"another image":            {`{"spec":{"containers":[{"name":"mm","image":"mm:2"}]}}`, false},
		"another container":        {`{"spec":{"containers":[{"name":"mm","image":"mm:1"},{"name":"puller","image":"p"}]}}`, false},
		"same quantity":            {container(`,"resources":{"limits":{"cpu":"1000m"}}`), true},
		"another quantity":         {container(`,"resources":{"limits":{"cpu":"1001m"}}`), false},
		"env":                      {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"modelmesh-serving"}]`), true},
		"env of another value":     {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"other"}]`), false},
		"env that is missing":      {container(`,"env":[{"name":"MM_LABELS","value":""}]`), false},
		"mount":                    {container(`,"volumeMounts":[{"name":"tc-config","mountPath":"/etc/watson/mmesh/config"}]`), true},
		"mount of another volume":  {container(`,"volumeMounts":[{"name":"other","mountPath":"/etc/watson/mmesh/config"}]`), false},
		"port":                     {container(`,"ports":[{"name":"grpc","containerPort":8033}]`), true},
		"port without a name":      {container(`,"ports":[{"containerPort":8033}]`), true},
		"another port":             {container(`,"ports":[{"containerPort":8034}]`), false},
		"args":                     {container(`,"args":["a","b"]`), true},
		"fewer args":               {container(`,"args":["a"]`), false},
		"probe":                    {container(`,"readinessProbe":{"httpGet":{"path":"/ready","port":8089}}`), true},
		"another probe":            {container(`,"readinessProbe":{"httpGet":{"path":"/ready","port":"grpc"}}`), false},
		"security of ours":         {container(`,"securityContext":{"runAsNonRoot":true}`), false},
		"grace period":             {`{"spec":{"terminationGracePeriodSeconds":90}}`, true},
		"another grace period":     {`{"spec":{"terminationGracePeriodSeconds":30}}`, false},
		"tolerations":              {`{"spec":{"tolerations":[{"key":"gpu"}]}}`, true},
		"no tolerations":           {`{"spec":{"tolerations":[]}}`, true},
		"another toleration":       {`{"spec":{"tolerations":[{"key":"cpu"}]}}`, false},
		"a volume, which it lacks": {`{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := holds(rawJSON(tc.want), liveTemplate())
			if err != nil || got != tc.is {
				t.Errorf("%v, %v, want %v", got, err, tc.is)
			}
		})
	}
	if _, err := holds(rawJSON(`{"spec":{"containers":[{"resources":{"limits":{"cpu":"many"}}}]}}`), liveTemplate()); err == nil {
		t.Error("a template that is none was compared")
	}
	if _, err := holds(func() {}, liveTemplate()); err == nil {
		t.Error("a function was compared")
	}
}

// rawJSON is a value that is already encoded.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }
