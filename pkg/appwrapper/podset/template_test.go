package podset

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// fullJob is a Job whose pod template has many fields.
const fullJob = `
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

func TestCheckTemplateDoesNotModifyObject(t *testing.T) {
	u := parseObject(t, fullJob)
	before := u.DeepCopy()
	if err := CheckTemplate(u.Object, "template.spec.template"); err != nil {
		t.Fatal(err)
	}
	if got, want := toYAML(t, u.Object), toYAML(t, before.Object); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func toYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// [appwrapper-28] CheckTemplate rejects paths to values that are not a pod template.
func TestCheckTemplateRejects(t *testing.T) {
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: Pod, metadata: {name: p}}`:                "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: []}`:                           "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: null}`:                         "content at template does not contain a spec",
		`{apiVersion: v1, kind: Pod, spec: {containers: x}}`:              "content at template.spec not parseable as a v1.PodSpec: ",
		`{apiVersion: v1, kind: Pod, spec: {overhead: {cpu: plenty}}}`:    "content at template.spec not parseable as a v1.PodSpec: ",
		`{apiVersion: v1, kind: Pod, spec: {activeDeadlineSeconds: 1.5}}`: "content at template.spec not parseable as a v1.PodSpec: ",
	} {
		if err := CheckTemplate(parseObject(t, text).Object, "template"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got error %v, want prefix %q", text, err, want)
		}
	}
}

// [D19] CheckTemplate accepts fields of a newer Kubernetes, and UnknownFields returns them.
func TestUnknownFields(t *testing.T) {
	u := parseObject(t, `{apiVersion: v1, kind: Pod, spec: {newField: {a: 1}, containers: [{name: c, image: x, flavour: sweet}]}}`)
	if err := CheckTemplate(u.Object, "template"); err != nil {
		t.Fatal(err)
	}
	messages := strings.Join(UnknownFields(u.Object, "template"), "\n")
	for _, want := range []string{`at path position 'template.spec' unknown field "newField"`, `unknown field "containers[0].flavour"`} {
		if !strings.Contains(messages, want) {
			t.Errorf("got messages\n%s\nwant them to contain %q", messages, want)
		}
	}
	if got := UnknownFields(parseObject(t, fullJob).Object, "template.spec.template"); len(got) != 0 {
		t.Errorf("known fields: got %q, want none", got)
	}
	for _, path := range []string{"template.metadata", "x"} {
		if got := UnknownFields(u.Object, path); got != nil {
			t.Errorf("%s: got unknown fields %q, want none", path, got)
		}
	}
}
