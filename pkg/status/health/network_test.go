package health

import "testing"

func TestStorageAndNetwork(t *testing.T) {
	check(t, []example{
		{
			name: "a claim with a volume",
			object: `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
status: {phase: Bound, capacity: {storage: 10Gi}}
`,
			want: Verdict{State: Healthy, Reason: "Bound", Message: "10Gi"},
		},
		{
			name: "a claim without a volume",
			object: `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
status: {phase: Pending}
`,
			want: Verdict{State: Progressing, Reason: "Pending", Message: "it has no volume yet, which some classes give when a pod uses it first"},
		},
		{
			name: "a claim that has lost its volume",
			object: `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
status: {phase: Lost}
`,
			want: Verdict{State: Failed, Reason: "Lost", Message: "its volume is gone; restore it, or the data is lost"},
		},
		{
			name: "a Service",
			object: `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {type: ClusterIP}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "a load balancer without an address",
			object: `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {type: LoadBalancer}
status: {loadBalancer: {}}
`,
			want: Verdict{State: Progressing, Reason: "Pending", Message: "it has no address from a load balancer yet"},
		},
		{
			name: "a load balancer with an address",
			object: `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {type: LoadBalancer}
status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "an Ingress",
			object: `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "a Route that is admitted",
			object: `
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: a}
spec: {host: a.example.com}
status:
  ingress:
  - conditions: [{type: Admitted, status: "True"}]
`,
			want: Verdict{State: Healthy, Message: "a.example.com"},
		},
		{
			name: "a Route that one router refuses",
			object: `
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: a}
status:
  ingress:
  - conditions: [{type: Admitted, status: "True"}]
  - conditions: [{type: Admitted, status: "False", reason: HostAlreadyClaimed, message: another Route has the host}]
`,
			want: Verdict{State: Failed, Reason: "HostAlreadyClaimed", Message: "another Route has the host"},
		},
		{
			name: "a Route without routers",
			object: `
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: a}
`,
			want: Verdict{State: Idle, Message: "no router has taken it up"},
		},
		{
			name: "an HTTPRoute that is accepted",
			object: `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: a}
status:
  parents:
  - conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs, status: "True"}]
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "an HTTPRoute whose backend is not there",
			object: `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: a}
status:
  parents:
  - conditions:
    - {type: Accepted, status: "True"}
    - {type: ResolvedRefs, status: "False", reason: RefNotPermitted, message: a ReferenceGrant is missing}
`,
			want: Verdict{State: Failed, Reason: "RefNotPermitted", Message: "a ReferenceGrant is missing"},
		},
		{
			name: "an HTTPRoute without a gateway",
			object: `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: a}
status: {parents: []}
`,
			want: Verdict{State: Idle, Message: "no gateway has taken it up"},
		},
	})
}

func TestScaling(t *testing.T) {
	check(t, []example{
		{
			name: "an autoscaler",
			object: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {minReplicas: 2, maxReplicas: 5}
status:
  currentReplicas: 3
  conditions:
  - {type: AbleToScale, status: "True"}
  - {type: ScalingActive, status: "True"}
  - {type: ScalingLimited, status: "False"}
`,
			want: Verdict{State: Healthy, Message: "3 replicas of 2 to 5"},
		},
		{
			name: "an autoscaler with defaults",
			object: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {maxReplicas: 5}
`,
			want: Verdict{State: Healthy, Message: "0 replicas of 1 to 5"},
		},
		{
			name: "an autoscaler without figures",
			object: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
status:
  conditions:
  - {type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: no metrics}
`,
			want: Verdict{State: Degraded, Reason: "FailedGetResourceMetric", Message: "no metrics"},
		},
		{
			name: "an autoscaler of a Deployment without replicas",
			object: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
status:
  conditions:
  - {type: ScalingActive, status: "False", reason: ScalingDisabled, message: the target has no replicas}
`,
			want: Verdict{State: Idle, Reason: "ScalingDisabled", Message: "the target has no replicas"},
		},
		{
			name: "a disruption budget, whose conditions count for nothing",
			object: `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a}
status:
  conditions:
  - {type: DisruptionAllowed, status: "False", reason: InsufficientPods}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "a workload in the queue",
			object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: a}
`,
			want: Verdict{State: Idle, Reason: "Pending", Message: "it waits in its queue"},
		},
		{
			name: "a workload for which there is no room",
			object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: a}
status:
  conditions:
  - {type: QuotaReserved, status: "False", reason: Pending, message: insufficient quota}
`,
			want: Verdict{State: Idle, Reason: "Pending", Message: "insufficient quota"},
		},
		{
			name: "a workload that is admitted",
			object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: a}
status:
  conditions:
  - {type: QuotaReserved, status: "True", reason: QuotaReserved}
  - {type: Admitted, status: "True", reason: Admitted}
`,
			want: Verdict{State: Healthy, Reason: "Admitted"},
		},
		{
			name: "a workload whose job has failed",
			object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: a}
status:
  conditions:
  - {type: Finished, status: "True", reason: Failed, message: too many attempts}
`,
			want: Verdict{State: Failed, Reason: "Failed", Message: "too many attempts"},
		},
		{
			name: "a workload that is over",
			object: `
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: a}
status:
  conditions:
  - {type: Admitted, status: "True", reason: Admitted}
  - {type: Finished, status: "True", reason: Succeeded}
`,
			want: Verdict{State: Healthy, Reason: "Succeeded"},
		},
	})
}
