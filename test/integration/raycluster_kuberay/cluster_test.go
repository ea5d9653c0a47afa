package raycluster_kuberay_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A RayCluster with the real KubeRay", func() {
	It("gets pods from the mutated template, and the certificate of each role contains the addresses of its pods", func(ctx SpecContext) {
		live := waitReady(ctx, createAndCleanUp(ctx, newRayCluster(env.Namespace(ctx, "ray"), "demo")))
		waitForCertificates(ctx, live, 3)
		for _, pod := range listPods(ctx, Default, live) {
			Expect(pod.Spec.InitContainers).NotTo(BeEmpty(), pod.Name)
			Expect(pod.Spec.InitContainers[0].Name).To(Equal(raycluster.InitCertificate))
			Expect(pod.Spec.Volumes).To(ContainElement(And(HaveField("Name", raycluster.VolumeCA),
				HaveField("Secret.Items", []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}))), "no pod mounts the key of the CA")
		}
		head := getCertificate(ctx, Default, live.GetNamespace(), namesOf(live).HeadTLS)
		for _, name := range []string{"demo-head-svc." + live.GetNamespace() + ".svc", "rayclient-demo-" + live.GetNamespace() + ".kind"} {
			Expect(head.VerifyHostname(name)).To(Succeed())
		}

		By("scaling up: the certificate still contains the addresses of the previous pods")
		before := listPods(ctx, Default, live)
		Expect(env.Admin.Patch(ctx, live, client.RawPatch("application/json-patch+json",
			[]byte(`[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 4}]`)))).To(Succeed())
		waitForCertificates(ctx, live, 5)
		workers := getCertificate(ctx, Default, live.GetNamespace(), namesOf(live).WorkerTLS)
		for _, pod := range before {
			if pod.Labels[raycluster.LabelNodeType] == raycluster.NodeTypeWorker {
				Expect(workers.VerifyHostname(pod.Status.PodIP)).To(Succeed())
			}
		}
		deleteCompletely(ctx, live)
	}, SpecTimeout(specTimeout))

	It("is queued by Kueue, and published by an Ingress [raycluster-25]", func(ctx SpecContext) {
		namespace := createQueue(ctx)
		queued := newRayCluster(namespace, "queued")
		queued.SetLabels(map[string]string{queueNameLabel: "queue"})
		live := waitReady(ctx, createAndCleanUp(ctx, queued))
		Expect(listObjects(ctx, Default, schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "Workload"}, namespace)).To(HaveLen(1))
		waitForCertificates(ctx, live, 3)
		var dashboard networkingv1.Ingress
		eventually(ctx, func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "ray-dashboard-queued"}, &dashboard)).To(Succeed())
		})
		Expect(dashboard.Spec.Rules[0].Host).To(Equal("ray-dashboard-queued-" + namespace + ".kind"))
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal("queued-head-svc"))

		By("selecting it in a RayJob, for which KubeRay creates no other cluster")
		job := createAndCleanUp(ctx, framework.Manifest("{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: job, namespace: %s}, spec: {entrypoint: 'python x.py', clusterSelector: {ray.io/cluster: queued}}}", namespace))
		eventually(ctx, func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(job), job)).To(Succeed())
			clusterName, _, _ := unstructured.NestedString(job.Object, "status", "rayClusterName")
			g.Expect(clusterName).To(Equal("queued"), "%v", job.Object["status"])
		})
		Expect(listObjects(ctx, Default, raycluster.GVK, namespace)).To(HaveLen(1))
		deleteAndWait(ctx, job)
		deleteCompletely(ctx, live)
	}, SpecTimeout(specTimeout))

	It("can be wrapped in an AppWrapper, and only the AppWrapper is queued [raycluster-26]", func(ctx SpecContext) {
		namespace := createQueue(ctx)
		wrapped := newRayCluster(namespace, "wrapped")
		unstructured.RemoveNestedField(wrapped.Object, "metadata", "namespace")
		raw, err := wrapped.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		appWrapper := &v1beta2.AppWrapper{}
		appWrapper.SetNamespace(namespace)
		appWrapper.SetName("aw")
		appWrapper.SetLabels(map[string]string{queueNameLabel: "queue"})
		appWrapper.Spec.Components = []v1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: raw}}}
		eventually(ctx, func(g Gomega) { g.Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, appWrapper))).To(Succeed()) })
		live := waitReady(ctx, newRayCluster(namespace, "wrapped"))
		waitForCertificates(ctx, live, 3)
		eventually(ctx, func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(appWrapper), appWrapper)).To(Succeed())
			g.Expect(appWrapper.Status.Phase).To(Equal(v1beta2.PhaseRunning))
		})
		Expect(listObjects(ctx, Default, schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta1", Kind: "Workload"}, namespace)).To(HaveLen(1), "the RayCluster is not queued by itself")
		Expect(env.Admin.Delete(ctx, appWrapper)).To(Succeed())
		env.WaitDeleted(ctx, appWrapper)
		eventually(ctx, func(g Gomega) {
			g.Expect(listObjects(ctx, g, raycluster.GVK, namespace)).To(BeEmpty())
			g.Expect(listRemaining(ctx, g, namespace, "wrapped")).To(BeEmpty())
			g.Expect(listPods(ctx, g, live)).To(BeEmpty())
		})
	}, SpecTimeout(specTimeout))

	It("becomes ready with a pull Secret that does not exist [raycluster-27]", func(ctx SpecContext) {
		cluster := newRayCluster(env.Namespace(ctx, "ray"), "pulling")
		Expect(unstructured.SetNestedSlice(cluster.Object, []any{map[string]any{"name": "missing"}},
			"spec", "headGroupSpec", "template", "spec", "imagePullSecrets")).To(Succeed())
		live := waitReady(ctx, createAndCleanUp(ctx, cluster))
		waitForCertificates(ctx, live, 3)
		Expect(listPods(ctx, Default, live)).To(ContainElement(And(HaveField("Labels", HaveKeyWithValue(raycluster.LabelNodeType, raycluster.NodeTypeHead)),
			HaveField("Spec.ImagePullSecrets", []corev1.LocalObjectReference{{Name: "missing"}}))))
	}, SpecTimeout(specTimeout))

	It("has its CA while it is suspended, and the other objects when it is resumed", func(ctx SpecContext) {
		cluster := newRayCluster(env.Namespace(ctx, "ray"), "later")
		Expect(unstructured.SetNestedField(cluster.Object, true, "spec", "suspend")).To(Succeed())
		live := createAndCleanUp(ctx, cluster)
		eventually(ctx, func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: live.GetNamespace(), Name: namesOf(live).CASecret}, &corev1.Secret{})).To(Succeed())
		})
		Expect(listPods(ctx, Default, live)).To(BeEmpty())
		env.Patch(ctx, reference(live), map[string]any{"spec": map[string]any{"suspend": false}})
		waitForCertificates(ctx, waitReady(ctx, live), 3)
		deleteCompletely(ctx, live)
	}, SpecTimeout(specTimeout))

	It("can be created by a RayJob, a RayService or a RayCronJob", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "ray")
		createAndCleanUp(ctx, framework.Manifest("{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: job, namespace: %s}, spec: {entrypoint: 'python x.py', rayClusterSpec: %s}}", namespace, spec))
		createAndCleanUp(ctx, framework.Manifest("{apiVersion: ray.io/v1, kind: RayService, metadata: {name: service, namespace: %s}, spec: {rayClusterConfig: %s}}", namespace, spec))
		cron := createAndCleanUp(ctx, framework.Manifest("{apiVersion: ray.io/v1, kind: RayCronJob, metadata: {name: cron, namespace: %s}, spec: {schedule: '@every 10s', "+
			"jobTemplate: {entrypoint: 'python x.py', rayClusterSpec: %s}}}", namespace, spec))
		eventually(ctx, func(g Gomega) {
			g.Expect(len(listObjects(ctx, g, rayv1.GroupVersion.WithKind("RayJob"), namespace))).To(BeNumerically(">=", 2), "the RayJob itself and a run of the RayCronJob")
		})
		env.Patch(ctx, reference(cron), map[string]any{"spec": map[string]any{"suspend": true}})
		eventually(ctx, func(g Gomega) {
			owners := map[string]int{}
			for _, cluster := range listObjects(ctx, g, raycluster.GVK, namespace) {
				owners[raycluster.View(cluster.Object).OwnerKind()]++
				g.Expect(containerNames(&cluster, "initContainers")).To(Equal(raycluster.InitCertificate))
				g.Expect(namesOf(&cluster).CASecret).To(HavePrefix(cluster.GetName() + "-ca-secret-"))
			}
			g.Expect(owners).To(Equal(map[string]int{"RayJob": len(listObjects(ctx, g, rayv1.GroupVersion.WithKind("RayJob"), namespace)), "RayService": 1}))
		})
		for _, cluster := range listObjects(ctx, Default, raycluster.GVK, namespace) {
			waitForCertificates(ctx, waitReady(ctx, &cluster), 3)
		}
	}, SpecTimeout(specTimeout))

	It("gets a new CA and an Event if its CA Secret is invalid, and still trusts the previous CA [R11]", func(ctx SpecContext) {
		live := waitReady(ctx, createAndCleanUp(ctx, newRayCluster(env.Namespace(ctx, "ray"), "broken")))
		waitForCertificates(ctx, live, 3)
		secret := &corev1.Secret{}
		secret.SetNamespace(live.GetNamespace())
		secret.SetName(namesOf(live).CASecret)
		env.Get(ctx, secret)
		previousCA := string(secret.Data["ca.crt"])
		env.Patch(ctx, secret, map[string]any{"data": map[string]any{"ca.key": nil}})
		eventually(ctx, func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			g.Expect(secret.Data).To(HaveKey("ca.key"))
			g.Expect(string(secret.Data["ca.crt"])).To(And(HaveSuffix(previousCA), Not(HavePrefix(previousCA))))
			for _, secretName := range []string{namesOf(live).HeadTLS, namesOf(live).WorkerTLS} {
				issued := &corev1.Secret{}
				g.Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: live.GetNamespace(), Name: secretName}, issued)).To(Succeed())
				g.Expect(issued.Data["ca.crt"]).To(Equal(secret.Data["ca.crt"]))
			}
			var messages []string
			var events corev1.EventList
			g.Expect(env.Admin.List(ctx, &events, client.InNamespace(live.GetNamespace()))).To(Succeed())
			for _, e := range events.Items {
				messages = append(messages, e.Reason+" "+e.Message)
			}
			g.Expect(strings.Join(messages, "\n")).To(ContainSubstring("CertificateAuthority a new CA replaces the previous one, because reading ca.key"))
		})
		waitForCertificates(ctx, live, 3)
	}, SpecTimeout(specTimeout))
})
