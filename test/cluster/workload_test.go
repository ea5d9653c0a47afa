package cluster_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

func template(image string, annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "test"}, Annotations: annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "first", Image: image}, {Name: "second", Image: "registry.example.com/sidecar"},
		}},
	}
}

var _ = Describe("an instance with fake nodes", func() {
	var (
		client    kubernetes.Interface
		namespace string
	)

	BeforeEach(func(ctx SpecContext) {
		client = clientOf(plain)
		created, err := client.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "workload-"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		namespace = created.Name
	})

	createPod := func(ctx SpecContext, image, behavior string) func() (*corev1.Pod, error) {
		var annotations map[string]string
		if behavior != "" {
			annotations = map[string]string{cluster.PodBehaviorAnnotation: behavior}
		}
		spec := template(image, annotations)
		created, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Annotations: annotations}, Spec: spec.Spec,
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		return func() (*corev1.Pod, error) {
			return client.CoreV1().Pods(namespace).Get(ctx, created.Name, metav1.GetOptions{})
		}
	}

	It("makes a Deployment available", func(ctx SpecContext) {
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "server"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}},
				Template: template("registry.example.com/server", nil),
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (int32, error) {
			live, err := client.AppsV1().Deployments(namespace).Get(ctx, "server", metav1.GetOptions{})
			return live.Status.AvailableReplicas, err
		}).WithContext(ctx).Should(BeEquivalentTo(2))
	}, NodeTimeout(2*time.Minute))

	DescribeTable("simulates the pod behaviour in an annotation or image name, until the annotation is removed", func(ctx SpecContext, behavior string, phase corev1.PodPhase, reason string) {
		check := func(g Gomega, live *corev1.Pod, err error) {
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(live.Status.Phase).To(Equal(phase))
			g.Expect(live.Status.ContainerStatuses).To(HaveLen(2))
			g.Expect(live.Status.ContainerStatuses[0].Ready).To(BeFalse())
			if reason != "" {
				g.Expect(live.Status.ContainerStatuses[0].State.Waiting).To(HaveField("Reason", reason))
			}
		}
		annotated := createPod(ctx, "registry.example.com/server", behavior)
		byImage := createPod(ctx, cluster.PodBehaviorRegistry+behavior+":1", "")
		for _, get := range []func() (*corev1.Pod, error){annotated, byImage} {
			Eventually(func(g Gomega) {
				live, err := get()
				check(g, live, err)
			}).Should(Succeed())
			Consistently(func(g Gomega) {
				live, err := get()
				check(g, live, err)
			}).WithTimeout(time.Second).Should(Succeed())
		}

		live, err := annotated()
		Expect(err).NotTo(HaveOccurred())
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, cluster.PodBehaviorAnnotation)
		_, err = client.CoreV1().Pods(namespace).Patch(ctx, live.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			live, err := annotated()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(live.Status.Phase).To(Equal(corev1.PodRunning))
			g.Expect(live.Status.ContainerStatuses).To(HaveEach(HaveField("Ready", true)))
		}).Should(Succeed())
	},
		Entry(nil, "not-ready", corev1.PodRunning, "", NodeTimeout(2*time.Minute)),
		Entry(nil, "crash-loop", corev1.PodRunning, "CrashLoopBackOff", NodeTimeout(2*time.Minute)),
		Entry(nil, "failed", corev1.PodRunning, "CrashLoopBackOff", NodeTimeout(2*time.Minute)),
		Entry(nil, "image-pull", corev1.PodPending, "ImagePullBackOff", NodeTimeout(2*time.Minute)),
	)

	It("ends the pod of a Job with the exit code in its image name, or keeps it running", func(ctx SpecContext) {
		createJob := func(image string) *batchv1.Job {
			pod := template(image, nil)
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			job, err := client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}, Spec: batchv1.JobSpec{Template: pod, BackoffLimit: new(int32(0))},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			return job
		}
		pods := func(job *batchv1.Job) []corev1.Pod {
			list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(job.UID)})
			Expect(err).NotTo(HaveOccurred())
			return list.Items
		}
		failing, running := createJob(cluster.PodBehaviorRegistry+"exit-14:1"), createJob(cluster.PodBehaviorRegistry+"not-ready:1")
		Eventually(func(g Gomega) {
			found := pods(failing)
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Status.ContainerStatuses).NotTo(BeEmpty())
			g.Expect(found[0].Status.ContainerStatuses[0].State.Terminated).To(HaveField("ExitCode", BeEquivalentTo(14)))
		}).Should(Succeed())
		phase := func() corev1.PodPhase {
			if found := pods(running); len(found) == 1 {
				return found[0].Status.Phase
			}
			return ""
		}
		Eventually(phase).Should(Equal(corev1.PodRunning))
		Consistently(phase).WithTimeout(3 * time.Second).Should(Equal(corev1.PodRunning))
	}, NodeTimeout(2*time.Minute))

	DescribeTable("ends a Job", func(ctx SpecContext, image string, want batchv1.JobConditionType) {
		spec := template(image, nil)
		spec.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Template: spec, BackoffLimit: new(int32(0))},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() ([]batchv1.JobCondition, error) {
			live, err := client.BatchV1().Jobs(namespace).Get(ctx, "job", metav1.GetOptions{})
			return live.Status.Conditions, err
		}).Should(ContainElement(HaveField("Type", want)))
	},
		Entry("with Complete if its pod succeeds", "registry.example.com/task", batchv1.JobComplete, NodeTimeout(2*time.Minute)),
		Entry("with Failed if its pod fails", cluster.PodBehaviorRegistry+"failed:1", batchv1.JobFailed, NodeTimeout(2*time.Minute)),
	)

	It("binds a claim, expands it on request, and deletes its volume with it", func(ctx SpecContext) {
		claims := client.CoreV1().PersistentVolumeClaims(namespace)
		_, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		var volume string
		expectCapacity := func(want string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				live, err := claims.Get(ctx, "data", metav1.GetOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(live.Status.Phase).To(Equal(corev1.ClaimBound))
				g.Expect(live.Spec.StorageClassName).To(HaveValue(Equal(cluster.StorageClass)))
				g.Expect(live.Status.Capacity.Storage().String()).To(Equal(want))
				volume = live.Spec.VolumeName
			}).Should(Succeed())
		}
		expectCapacity("1Gi")
		patch := []byte(`{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
		_, err = claims.Patch(ctx, "data", types.MergePatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		expectCapacity("3Gi")

		Expect(claims.Delete(ctx, "data", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() bool {
			_, err := client.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
	}, NodeTimeout(2*time.Minute))
})
