package podset

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// full is a pod template with many fields.
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

func TestCheckTemplateDoesNotTouchTheObject(t *testing.T) {
	u := object(t, full)
	before := u.DeepCopy()
	if err := CheckTemplate(u.Object, "template.spec.template"); err != nil {
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

// [appwrapper-28] Paths to other values than a pod template.
func TestCheckTemplateRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: Pod, metadata: {name: p}}`:                "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: []}`:                           "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: null}`:                         "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: {containers: x}}`:              "content at template.spec not parseable as a v1.PodSpec: ",
		`{apiVersion: v1, kind: Pod, spec: {overhead: {cpu: plenty}}}`:    "content at template.spec not parseable as a v1.PodSpec: ",
		`{apiVersion: v1, kind: Pod, spec: {activeDeadlineSeconds: 1.5}}`: "content at template.spec not parseable as a v1.PodSpec: ",
	} {
		if err := CheckTemplate(object(t, text).Object, "template"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// [D19] Fields of a newer Kubernetes are accepted and reported.
func TestUnknownFields(t *testing.T) {
	u := object(t, `{apiVersion: v1, kind: Pod, spec: {inTheFuture: {a: 1}, containers: [{name: c, image: x, flavour: sweet}]}}`)
	if err := CheckTemplate(u.Object, "template"); err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(UnknownFields(u.Object, "template"), "\n")
	for _, want := range []string{`at path position 'template.spec' unknown field "inTheFuture"`, `unknown field "containers[0].flavour"`} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no %q in\n%s", want, warnings)
		}
	}
	if got := UnknownFields(object(t, full).Object, "template.spec.template"); len(got) != 0 {
		t.Errorf("unexpected unknown fields %q", got)
	}
	for _, path := range []string{"template.metadata", "x"} {
		if got := UnknownFields(u.Object, path); got != nil {
			t.Errorf("%s: got unknown fields %q, want none", path, got)
		}
	}
}
