package podset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// full has every field that is copied, and some of those that are not.
const full = `
apiVersion: batch/v1
kind: Job
spec:
  template:
    metadata: {name: dropped, labels: {a: b, number: 5}, annotations: {c: d, none: null}, finalizers: [x]}
    spec:
      priority: 7
      priorityClassName: high
      preemptionPolicy: Never
      restartPolicy: Never
      dnsPolicy: Default
      nodeName: n1
      nodeSelector: {disk: ssd}
      schedulerName: mine
      serviceAccountName: dropped
      hostNetwork: true
      terminationGracePeriodSeconds: 5
      securityContext: {runAsUser: 5}
      overhead: {cpu: 5m}
      volumes: [{name: v, emptyDir: {}}]
      tolerations: [{key: k, operator: Exists}]
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
      initContainers:
      - {name: i, image: "registry.example.com:5000/init", env: [{name: A, value: b}]}
      containers:
      - name: c
        image: registry.example.com/app@sha256:0123
        command: [sh]
        args: [x]
        imagePullPolicy: Never
        terminationMessagePath: /log
        terminationMessagePolicy: FallbackToLogsOnError
        securityContext: {privileged: false}
        ports: [{containerPort: 80}]
        livenessProbe: {exec: {command: [x]}}
        volumeMounts: [{name: v, mountPath: /v}]
        resources: {requests: {cpu: 100u, memory: 1.5}, limits: {nvidia.com/gpu: 1}}
`

// The reduction of the reference, and D22: a given grace period is kept.
func TestTemplate(t *testing.T) {
	const want = `
metadata: {labels: {a: b}, annotations: {c: d}}
spec:
  priorityClassName: high
  preemptionPolicy: Never
  restartPolicy: Never
  dnsPolicy: Default
  nodeName: n1
  nodeSelector: {disk: ssd}
  schedulerName: mine
  terminationGracePeriodSeconds: 5
  securityContext: {runAsUser: 5}
  overhead: {cpu: 5m}
  tolerations: [{key: k, operator: Exists}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
  initContainers:
  - {name: i, image: "registry.example.com:5000/init", imagePullPolicy: Always, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {}}
  containers:
  - name: c
    image: registry.example.com/app@sha256:0123
    command: [sh]
    args: [x]
    imagePullPolicy: Never
    terminationMessagePath: /log
    terminationMessagePolicy: FallbackToLogsOnError
    securityContext: {privileged: false}
    resources: {requests: {cpu: 1m, memory: 1500m}, limits: {nvidia.com/gpu: "1"}}
`
	got, err := Template(object(t, full).Object, "template.spec.template")
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, want)
}

func TestTemplateDefaults(t *testing.T) {
	const want = `
metadata: {}
spec:
  containers:
  - {name: main, image: "registry.example.com/app:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {}}
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  securityContext: {}
  preemptionPolicy: PreemptLowerPriority
  terminationGracePeriodSeconds: 30
`
	got, err := Template(object(t, jobSet).Object, "template.spec.replicatedJobs[1].template.spec.template")
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, want)
}

func same(t *testing.T, got *corev1.PodTemplateSpec, want string) {
	t.Helper()
	wanted := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(want), wanted); err != nil {
		t.Fatal(err)
	}
	first, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	second, err := yaml.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("got\n%s\nwant\n%s", first, second)
	}
}

func TestTemplateDoesNotTouchTheObject(t *testing.T) {
	u := object(t, full)
	before := u.DeepCopy()
	if _, err := Template(u.Object, "template.spec.template"); err != nil {
		t.Fatal(err)
	}
	if a, b := mustYAML(t, u.Object), mustYAML(t, before.Object); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

func mustYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// [appwrapper-28] A path that leads to something else.
func TestTemplateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: Pod, metadata: {name: p}}`:                "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: []}`:                           "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: null}`:                         "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: {containers: x}}`:              "content at template.spec not parseable as a v1.PodSpec: ",
		`{apiVersion: v1, kind: Pod, spec: {overhead: {cpu: plenty}}}`:    "content at template.spec not parseable as a v1.PodSpec: ",
		`{apiVersion: v1, kind: Pod, spec: {activeDeadlineSeconds: 1.5}}`: "content at template.spec not parseable as a v1.PodSpec: ",
	} {
		if got, err := Template(object(t, text).Object, "template"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", text, got, err, want)
		}
	}
}

// D19: fields of a newer Kubernetes are passed over, and can be told about.
func TestUnknownFields(t *testing.T) {
	u := object(t, `{apiVersion: v1, kind: Pod, spec: {inTheFuture: {a: 1}, containers: [{name: c, image: x, flavour: sweet}]}}`)
	got, err := Template(u.Object, "template")
	if err != nil || got.Spec.Containers[0].Name != "c" {
		t.Fatalf("got %v, %v", got, err)
	}
	warnings := strings.Join(UnknownFields(u.Object, "template"), "\n")
	for _, want := range []string{`at path position 'template.spec' unknown field "inTheFuture"`, `unknown field "containers[0].flavour"`} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no %q in\n%s", want, warnings)
		}
	}
	if got := UnknownFields(object(t, full).Object, "template.spec.template"); len(got) != 0 {
		t.Errorf("nothing is unknown, got %q", got)
	}
	for _, path := range []string{"template.metadata", "x"} {
		if got := UnknownFields(u.Object, path); got != nil {
			t.Errorf("%s: got %q", path, got)
		}
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"app":                          corev1.PullAlways,
		"app:latest":                   corev1.PullAlways,
		"app:1":                        corev1.PullIfNotPresent,
		"registry:5000/app":            corev1.PullAlways,
		"registry:5000/app:latest":     corev1.PullAlways,
		"registry:5000/app:2":          corev1.PullIfNotPresent,
		"registry/app@sha256:01":       corev1.PullIfNotPresent,
		"registry/app:latest@sha256:1": corev1.PullAlways,
		"":                             corev1.PullAlways,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%q: got %s, want %s", image, got, want)
		}
	}
}
