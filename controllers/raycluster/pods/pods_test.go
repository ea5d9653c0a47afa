package pods

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/raytest"
)

// Trimmed pods have all fields that are read, and are much smaller.
func TestTrimPod(t *testing.T) {
	pod := raytest.Pod("head", raycluster.NodeTypeHead, "u", "10.0.0.1", "fd00::1")
	pod.Annotations = map[string]string{AnnotationCertificateFor: "10.0.0.1", "big": string(make([]byte, 4000))}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: make([]byte, 4000)}}}
	pod.Spec = corev1.PodSpec{
		ServiceAccountName: "sa", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		Containers: []corev1.Container{
			{Name: "c", Image: "i", Args: []string{"ray", "start"}, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}, {Name: "RAY_USE_TLS", Value: "1"}, {Name: "RAY_AUTH_MODE", Value: "token"}}},
			{Name: "oauth-proxy", Image: "i", Args: []string{"--openshift-service-account=demo-oauth-proxy"}, VolumeMounts: []corev1.VolumeMount{{Name: "proxy-tls-secret", MountPath: "/tls"}}},
		},
		Volumes: []corev1.Volume{
			{Name: "data"}, {Name: "ca-vol", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "ca-secret-demo"}}},
			{Name: "server-cert", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodPending, raytest.Waiting("ImagePullBackOff")
	pod.Status.InitContainerStatuses = raytest.Waiting("PodInitializing")
	reasons, addresses := WaitingReasons(pod), Addresses(pod)
	demo := raycluster.View(map[string]any{"metadata": map[string]any{"name": "demo", "namespace": "team"}})
	untrimmed, _ := Injections(demo, []corev1.Pod{*pod})
	trimmed, err := trimPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	got := trimmed.(*corev1.Pod)
	if !slices.Equal(WaitingReasons(got), reasons) || !slices.Equal(reasons, []string{"PodInitializing", "ImagePullBackOff"}) {
		t.Errorf("trimmed pod: waiting reasons %v, want %v", WaitingReasons(got), reasons)
	}
	if !slices.Equal(Addresses(got), addresses) || len(addresses) != 2 {
		t.Errorf("trimmed pod: addresses %v, want %v", Addresses(got), addresses)
	}
	if got.Spec.ServiceAccountName != "sa" || len(got.Spec.ImagePullSecrets) != 1 || got.Annotations[AnnotationCertificateFor] == "" ||
		got.Labels[raycluster.LabelNodeType] != raycluster.NodeTypeHead || got.Status.Phase != corev1.PodPending || clusterOfPod(got).UID != "u" {
		t.Errorf("the trimmed pod lacks a field that is read: %+v", got)
	}
	heads, mounted := Injections(demo, []corev1.Pod{*got})
	want := raycluster.Injected{Sidecar: raycluster.AuthOAuth, MTLS: true, PodIssued: true, Encrypted: true, RayToken: true}
	if !slices.Equal(heads, untrimmed) || !slices.Equal(heads, []raycluster.Injected{want}) || mounted != want {
		t.Errorf("got injections %+v and mounted %+v of the trimmed pod, want %+v; untrimmed pod %+v", heads, mounted, want, untrimmed)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 1600 || strings.Contains(string(raw), "secret\"}") || len(got.Spec.Containers[0].Args) > 0 || len(got.ManagedFields) > 0 {
		t.Errorf("the trimmed pod has %d bytes, or contains unread environment variables, arguments or managed fields: %s", len(raw), raw)
	}
	if other, err := trimPod("tombstone"); err != nil || other != "tombstone" {
		t.Error("trimPod changed an object that is not a Pod")
	}
}

func TestAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		ips  []string
		want []netip.Addr
	}{
		"no address":   {nil, nil},
		"one address":  {[]string{"10.0.0.1"}, []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
		"dual-stack":   {[]string{"10.0.0.1", "fd00::1"}, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}},
		"IPv4 in IPv6": {[]string{"::ffff:10.0.0.1"}, []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
		"invalid":      {[]string{"x"}, nil},
	} {
		if got := Addresses(raytest.Pod("p", "head", "u", tc.ips...)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// Only pods that a cluster controls are listed, regardless of labels.
func TestList(t *testing.T) {
	own, previous, foreign := raytest.Pod("own", "head", "u", "10.0.0.1"), raytest.Pod("previous", "head", "old", "10.0.0.2"), raytest.Pod("foreign", "worker", "u", "10.0.0.3")
	foreign.OwnerReferences = nil
	ofJob := raytest.Pod("job", "worker", "u", "10.0.0.4")
	ofJob.OwnerReferences[0].Kind = "Job"
	elsewhere := raytest.Pod("other-namespace", "head", "u", "10.0.0.5")
	elsewhere.Namespace = "other"
	pods := fake.NewClientBuilder().WithObjects(own, previous, foreign, ofJob, elsewhere).
		WithIndex(&corev1.Pod{}, Index, IndexValue).Build()
	got, err := List(t.Context(), pods, "team", "u")
	if err != nil || len(got) != 1 || got[0].Name != "own" {
		t.Errorf("List returned %v, error %v, want only the pod of this cluster", got, err)
	}
	for _, pod := range []client.Object{foreign, ofJob} {
		if requests := ToCluster(context.Background(), pod); requests != nil {
			t.Errorf("%s enqueues %v, want no request", pod.GetName(), requests)
		}
	}
	requests := ToCluster(context.Background(), own)
	if len(requests) != 1 || requests[0].String() != "team/demo" {
		t.Errorf("unexpected requests: %v", requests)
	}
	if _, err := List(t.Context(), fake.NewClientBuilder().Build(), "team", "u"); err == nil {
		t.Error("want an error without the index")
	}
}

func TestChanged(t *testing.T) {
	withoutAddress, withAddress := raytest.Pod("p", "head", "u"), raytest.Pod("p", "head", "u", "10.0.0.1")
	waiting := raytest.Pod("p", "head", "u")
	waiting.Status.ContainerStatuses = raytest.Waiting("ErrImagePull")
	ready := withAddress.DeepCopy()
	ready.Status.Phase = corev1.PodRunning
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	worker, failed := raytest.Pod("p", "worker", "u"), ready.DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	predicate := Changed()
	for name, tc := range map[string]struct {
		got, want bool
	}{
		"create of a worker":               {predicate.Create(event.CreateEvent{Object: worker}), false},
		"create of a head":                 {predicate.Create(event.CreateEvent{Object: withoutAddress}), true},
		"head failed":                      {predicate.Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: failed}), true},
		"create of a head with an address": {predicate.Create(event.CreateEvent{Object: withAddress}), true},
		"create of a head that waits":      {predicate.Create(event.CreateEvent{Object: waiting}), true},
		"head got an address":              {predicate.Update(event.UpdateEvent{ObjectOld: withoutAddress, ObjectNew: withAddress}), true},
		"head started to wait":             {predicate.Update(event.UpdateEvent{ObjectOld: withoutAddress, ObjectNew: waiting}), true},
		"head became ready":                {predicate.Update(event.UpdateEvent{ObjectOld: withAddress, ObjectNew: ready}), false},
		"no change":                        {predicate.Update(event.UpdateEvent{ObjectOld: withoutAddress, ObjectNew: withoutAddress}), false},
		"delete":                           {predicate.Delete(event.DeleteEvent{Object: withAddress}), true},
		"generic event":                    {predicate.Generic(event.GenericEvent{Object: withAddress}), false},
		"create of another kind":           {predicate.Create(event.CreateEvent{Object: &corev1.Secret{}}), false},
		"new object of another kind":       {predicate.Update(event.UpdateEvent{ObjectOld: withoutAddress, ObjectNew: &corev1.Secret{}}), false},
		"old object of another kind":       {predicate.Update(event.UpdateEvent{ObjectOld: &corev1.Secret{}, ObjectNew: withoutAddress}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %t, want %t", name, tc.got, tc.want)
		}
	}
}
