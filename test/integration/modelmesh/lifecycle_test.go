package modelmesh_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("An enabled namespace", func() {
	It("gets a Service, the objects that pods mount and a Deployment for each multi-model runtime, which are not written again [modelmesh-31] [modelmesh-88] [M12] [M16]", func(ctx SpecContext) {
		start := env.AuditPosition()
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		shared := createClusterRuntime(ctx, "shared-"+ns, "sklearn")
		local := createRuntime(ctx, ns, "local", "onnx")
		createRuntime(ctx, ns, "single", "onnx", func(r *v1alpha1.ServingRuntime) {
			r.Spec.MultiModel = nil
			r.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
		})
		createPredictor(ctx, ns, "m", "onnx")
		deployment, s := deploymentOf(ns, "local"), serviceOf(ns)
		env.WaitExists(ctx, s, constraints(ns), etcdCopy(ns), monitor(ns), deployment, deploymentOf(ns, shared.Name))
		waitForReplicas(ctx, deployment, 2)
		Expect(metav1.GetControllerOf(deployment).UID).To(Equal(local.UID))
		Expect(metav1.GetControllerOf(s).Kind).To(Equal("Namespace"))
		Expect(deployment.Spec.Template.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "modelmesh-controller"))
		Expect(framework.Variable(framework.Container(deployment, "mm"), "MM_LABELS")).To(Equal("mt:onnx,mt:onnx:1,pv:grpc-v2,pv:v2,rt:local"))
		copied := etcdCopy(ns)
		env.WaitExists(ctx, copied)
		Expect(string(copied.Data["etcd_connection"])).To(ContainSubstring(`"root_prefix":"models/mm_ns/` + ns + `"`))
		env.ExpectAbsent(ctx, deploymentOf(ns, "single"))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())

		By("changing the Deployment of a ClusterServingRuntime [M19]")
		sharedDeployment := deploymentOf(ns, shared.Name)
		env.Get(ctx, sharedDeployment)
		gracePeriod := *sharedDeployment.Spec.Template.Spec.TerminationGracePeriodSeconds
		env.Patch(ctx, sharedDeployment, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": gracePeriod + 1}}}})
		env.Patch(ctx, sharedDeployment, map[string]any{"spec": map[string]any{"replicas": 7}})
		waitForReplicas(ctx, sharedDeployment, 0)
		env.WaitFor(ctx, sharedDeployment, func(g Gomega) {
			g.Expect(sharedDeployment.Spec.Template.Spec.TerminationGracePeriodSeconds).To(HaveValue(Equal(gracePeriod)))
		})

		By("disabling the namespace [M11]")
		foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "theirs", Labels: map[string]string{"modelmesh-service": "theirs"}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		Expect(env.Admin.Create(ctx, foreign)).To(Succeed())
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "false")
		env.WaitDeleted(ctx, s, constraints(ns), copied, deployment, sharedDeployment)
		env.Get(ctx, foreign)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)

		By("enabling the namespace again")
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "true")
		env.WaitExists(ctx, serviceOf(ns), deploymentOf(ns, "local"))
	}, NodeTimeout(specTimeout))

	It("serves valid runtimes next to invalid ones, and reports the invalid ones in Events [M1] [M6] [M28]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		tooMany := createRuntime(ctx, ns, "too-many", "onnx", func(r *v1alpha1.ServingRuntime) { r.Spec.Replicas = new(int64(70000)) })
		negative := createRuntime(ctx, ns, "negative", "onnx", func(r *v1alpha1.ServingRuntime) { r.Spec.Replicas = new(int64(-1)) })
		withoutEndpoint := createRuntime(ctx, ns, "without-endpoint", "onnx", func(r *v1alpha1.ServingRuntime) { r.Spec.GRPCEndpoint = nil })
		createRuntime(ctx, ns, "good", "onnx")
		env.WaitExists(ctx, deploymentOf(ns, "good"))
		env.WaitForEvent(ctx, tooMany, "InvalidRuntime", "70000")
		env.WaitForEvent(ctx, negative, "InvalidRuntime", "-1")
		env.WaitForEvent(ctx, withoutEndpoint, "InvalidRuntime", "grpcEndpoint")
		env.ExpectAbsent(ctx, deploymentOf(ns, "too-many"), deploymentOf(ns, "negative"), deploymentOf(ns, "without-endpoint"))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
		env.Patch(ctx, withoutEndpoint, map[string]any{"spec": map[string]any{"grpcEndpoint": "port:8085"}})
		env.WaitExists(ctx, deploymentOf(ns, "without-endpoint"))
		env.WaitForEvent(ctx, withoutEndpoint, "ValidRuntime", "valid again")
	}, NodeTimeout(specTimeout))

	It("keeps fields that third parties patch into its Deployments [modelmesh-28]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		r := createRuntime(ctx, ns, "r", "onnx")
		deployment := deploymentOf(ns, "r")
		env.WaitExists(ctx, deployment)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"trustyai.example.com/patched": "yes"}},
			"spec": map[string]any{
				"containers": []any{map[string]any{
					"name":         "mm",
					"env":          []any{map[string]any{"name": "MM_PAYLOAD_PROCESSORS", "value": "http://trustyai/consumer"}},
					"volumeMounts": []any{map[string]any{"name": "trusty", "mountPath": "/etc/trusty"}},
				}},
				"volumes": []any{map[string]any{"name": "trusty", "emptyDir": map[string]any{}}},
			},
		}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Admin.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner("trustyai"))).To(Succeed())
		expectPatched := func(g Gomega) {
			template := deployment.Spec.Template
			g.Expect(template.Annotations).To(HaveKeyWithValue("trustyai.example.com/patched", "yes"))
			g.Expect(framework.Variable(framework.Container(deployment, "mm"), "MM_PAYLOAD_PROCESSORS")).To(Equal("http://trustyai/consumer"))
			g.Expect(framework.Container(deployment, "mm").VolumeMounts).To(ContainElement(HaveField("MountPath", "/etc/trusty")))
			g.Expect(template.Spec.Volumes).To(ContainElement(HaveField("Name", "trusty")))
		}
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.Get(ctx, deployment)
		expectPatched(Default)
		By("changing the runtime")
		env.Patch(ctx, r, map[string]any{"spec": map[string]any{"labels": map[string]any{"more": "labels"}}})
		env.WaitFor(ctx, deployment, func(g Gomega) {
			g.Expect(deployment.Spec.Template.Labels).To(HaveKeyWithValue("more", "labels"))
			expectPatched(g)
		})
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))

	It("scales runtimes without models to zero [modelmesh-98] [M25]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		env.SetConfigMap(ctx, ns, "model-serving-config", "config.yaml", "scaleToZero: {gracePeriodSeconds: 5}\npodsPerRuntime: 3\n")
		createRuntime(ctx, ns, "r", "onnx")
		deployment := deploymentOf(ns, "r")
		env.WaitExists(ctx, deployment)
		Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(0))))
		m := createPredictor(ctx, ns, "m", "onnx")
		waitForReplicas(ctx, deployment, 3)
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		env.WaitDeleted(ctx, m)
		waitForReplicas(ctx, deployment, 0)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))

	It("scales according to the annotations of the runtime [modelmesh-99] [modelmesh-100] [modelmesh-101] [M17] [M18]", Serial, func(ctx SpecContext) {
		ns := env.Namespace(ctx, "mesh", "modelmesh-enabled", "true")
		env.SetConfigMap(ctx, ns, "model-serving-config", "config.yaml", "scaleToZero: {gracePeriodSeconds: 1}\n")
		const class = "serving.kserve.io/autoscalerClass"
		r := createRuntime(ctx, ns, "r", "onnx", withAnnotations(class, "hpa"))
		deployment, h := deploymentOf(ns, "r"), autoscalerOf(ns, "r")
		waitForReplicas(ctx, deployment, 0)
		env.ExpectAbsent(ctx, h)
		m := createPredictor(ctx, ns, "m", "onnx")
		env.WaitExists(ctx, h)
		Expect(h.Spec.MinReplicas).To(HaveValue(Equal(int32(1))))
		waitForReplicas(ctx, deployment, 1)
		env.Patch(ctx, r, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			"serving.kserve.io/min-scale": "2", "serving.kserve.io/max-scale": "4",
			"serving.kserve.io/targetUtilizationPercentage": "90", "serving.kserve.io/metrics": "memory",
		}}})
		waitForReplicas(ctx, deployment, 2)
		env.WaitFor(ctx, h, func(g Gomega) {
			g.Expect(h.Spec.MaxReplicas).To(Equal(int32(4)))
			g.Expect(h.Spec.Metrics[0].Resource.Name).To(Equal(corev1.ResourceMemory))
			g.Expect(h.Spec.Metrics[0].Resource.Target.AverageUtilization).To(HaveValue(Equal(int32(90))))
		})
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		restart := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		writes := env.Since(restart).ByUser(manager.User).WithoutEvents().Writes().Where(func(e framework.Entry) bool { return e.Namespace == ns })
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		waitForReplicas(ctx, deployment, 0)
		env.WaitDeleted(ctx, h)
		createPredictor(ctx, ns, "again", "onnx")
		env.WaitExists(ctx, autoscalerOf(ns, "r"))
		env.SetAnnotation(ctx, r, class, nil)
		env.WaitDeleted(ctx, autoscalerOf(ns, "r"))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("Foreign objects with the names of child objects", func() {
	It("are not taken over, and the runtime gets an Event [M11]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "foreign")
		blocking := []client.Object{
			&networkingv1.NetworkPolicy{ObjectMeta: objectMeta(ns, "modelmesh-runtimes")},
			&corev1.ConfigMap{ObjectMeta: objectMeta(ns, "tc-config"), Data: map[string]string{"theirs": "x"}},
			etcdSecret(ns, "http://theirs:2379"), // its deletion triggers a reconcile
		}
		foreign := &appsv1.Deployment{ObjectMeta: objectMeta(ns, "modelmesh-serving-r"), Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "theirs", Image: "registry.example.com/theirs:1"}}}},
		}}
		for _, o := range append(blocking, foreign) {
			Expect(env.Admin.Create(ctx, o)).To(Succeed())
		}
		r := createRuntime(ctx, ns, "r", "onnx")
		env.SetLabel(ctx, framework.NamespaceNamed(ns), "modelmesh-enabled", "true")
		for _, text := range []string{
			"NetworkPolicy " + ns + "/modelmesh-runtimes exists and was not created by this operator",
			"ConfigMap " + ns + "/tc-config exists and was not created by this operator", "until then not written: Deployment " + ns + "/modelmesh-serving-r",
		} {
			env.WaitForEvent(ctx, r, "RuntimeRefused", text)
		}
		env.WaitForEvent(ctx, r, "InvalidRuntime", "the Secret model-serving-etcd in namespace "+ns+" was not created by the operator")
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		for _, o := range blocking {
			before := o.GetResourceVersion()
			env.Get(ctx, o)
			Expect(o.GetResourceVersion()).To(Equal(before), "%T was written", o)
			Expect(env.Admin.Delete(ctx, o)).To(Succeed())
		}
		env.WaitForEvent(ctx, r, "RuntimeRefused", "Deployment "+ns+"/modelmesh-serving-r exists and was not created by this operator")
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.Get(ctx, foreign)
		Expect(foreign.Generation).To(Equal(int64(1)))
		Expect(foreign.Labels).NotTo(HaveKey("platform.opendatahub.io/operator"))
	}, NodeTimeout(specTimeout))
})
