package resources

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/server"
)

func podsFrom(t *testing.T, text string) *server.Pods {
	t.Helper()
	p := &server.Pods{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// The fields of server.Pods are set on the pods that they apply to. Without fields, pods are unchanged.
func TestConfigureServerPod(t *testing.T) {
	pod := func() *corev1ac.PodSpecApplyConfiguration {
		return corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName("server"), corev1ac.Container().WithName("proxy"))
	}
	selector := map[string]string{"app": "a"}
	for name, c := range map[string]struct{ spec, wantOther, wantServer string }{
		"empty spec": {"{}", `{"containers":[{"name":"server"},{"name":"proxy"}]}`, `{"containers":[{"name":"server"},{"name":"proxy"}]}`},
		"scheduling": {"{nodeSelector: {disk: ssd}, tolerations: [{key: k, operator: Exists}], priorityClassName: high, imagePullSecrets: [{name: pull}]}",
			`{"containers":[{"name":"server"},{"name":"proxy"}],"nodeSelector":{"disk":"ssd"},"imagePullSecrets":[{"name":"pull"}],"tolerations":[{"key":"k","operator":"Exists"}],"priorityClassName":"high"}`,
			`{"containers":[{"name":"server"},{"name":"proxy"}],"nodeSelector":{"disk":"ssd"},"imagePullSecrets":[{"name":"pull"}],"tolerations":[{"key":"k","operator":"Exists"}],"priorityClassName":"high"}`},
		"affinity": {"{affinity: {podAntiAffinity: {}}}", `{"containers":[{"name":"server"},{"name":"proxy"}]}`,
			`{"containers":[{"name":"server"},{"name":"proxy"}],"affinity":{"podAntiAffinity":{}}}`},
		"topology spread": {"{topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}, " +
			"{maxSkew: 2, topologyKey: host, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {b: c}}}]}",
			`{"containers":[{"name":"server"},{"name":"proxy"}]}`,
			`{"containers":[{"name":"server"},{"name":"proxy"}],"topologySpreadConstraints":[` +
				`{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"a"}}},` +
				`{"maxSkew":2,"topologyKey":"host","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"b":"c"}}}]}`},
		"volumes": {"{volumes: [{name: v, secret: {secretName: s, optional: true}}, {name: w, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /v, readOnly: true, subPath: x}]}",
			`{"containers":[{"name":"server"},{"name":"proxy"}]}`,
			`{"volumes":[{"name":"extra-v","secret":{"secretName":"s","optional":true}},{"name":"extra-w","emptyDir":{}}],` +
				`"containers":[{"name":"server","volumeMounts":[{"name":"extra-v","readOnly":true,"mountPath":"/v","subPath":"x"}]},{"name":"proxy"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			pods := podsFrom(t, c.spec)
			otherPod, serverPod := pod(), pod()
			SetScheduling(otherPod, pods)
			ConfigureServerPod(serverPod, selector, pods)
			for config, want := range map[*corev1ac.PodSpecApplyConfiguration]string{otherPod: c.wantOther, serverPod: c.wantServer} {
				got, err := json.Marshal(config)
				if err != nil || string(got) != want {
					t.Errorf("error %v\ngot  %s\nwant %s", err, got, want)
				}
			}
		})
	}
}

func TestDisruptionBudget(t *testing.T) {
	expectJSON(t, `{"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":"a","namespace":"ns","labels":{"app":""}},`+
		`"spec":{"selector":{"matchLabels":{"x":"y"}},"maxUnavailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`,
		DisruptionBudget(metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: map[string]string{"app": ""}}, map[string]string{"x": "y"}))
}

func TestScaleStatus(t *testing.T) {
	d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 3}}
	if got, want := ScaleStatus(d, map[string]string{"b": "2", "a": "1"}), (server.Scale{Replicas: 3, Selector: "a=1,b=2"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if ReplicasOrOne(nil) != 1 || ReplicasOrOne(new(int32(0))) != 0 {
		t.Error("want 1 for nil replicas, and 0 for 0")
	}
}
