// Command validation judges rendered objects as Kubernetes' API server would: by the validation of
// k8s.io/kubernetes itself, and pods by the Pod Security Standard "restricted". Schemas cannot say what
// these can: that a port's name is too long, or that a selector does not match its template.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	autoscalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

func main() {
	judged, custom, failed := 0, 0, 0
	for _, path := range os.Args[1:] {
		file, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(file))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var object runtime.Object
			if err == nil {
				object, _, err = legacyscheme.Codecs.UniversalDecoder().Decode(document, nil, nil)
			}
			if runtime.IsNotRegisteredError(err) {
				// Of an operator: its schema is all there is.
				custom++
				continue
			}
			if err == nil {
				err = judge(object)
			}
			judged++
			if err != nil {
				failed++
				fmt.Printf("%s: %T: %v\n", path, object, err)
			}
		}
		file.Close()
	}
	fmt.Printf("%d objects, %d wrong; %d of operators not looked at\n", judged, failed, custom)
	if failed > 0 || judged == 0 {
		os.Exit(1)
	}
}

func judge(object runtime.Object) error {
	pods := corevalidation.PodValidationOptions{}
	var faults field.ErrorList
	switch object := object.(type) {
	case *apps.Deployment:
		faults = appsvalidation.ValidateDeployment(object, pods)
		if err := restricted(&object.Spec.Template); err != nil {
			return err
		}
	case *core.Pod:
		faults = corevalidation.ValidatePodCreate(object, pods)
		if err := restricted(&core.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}); err != nil {
			return err
		}
	case *core.Service:
		// As the API server does before it validates.
		if object.Spec.ClusterIP != "" && len(object.Spec.ClusterIPs) == 0 {
			object.Spec.ClusterIPs = []string{object.Spec.ClusterIP}
		}
		faults = corevalidation.ValidateServiceCreate(object)
	case *core.ConfigMap:
		faults = corevalidation.ValidateConfigMap(object)
	case *core.ServiceAccount:
		faults = corevalidation.ValidateServiceAccount(object)
	case *core.PersistentVolumeClaim:
		options := corevalidation.PersistentVolumeClaimSpecValidationOptions{}
		faults = corevalidation.ValidatePersistentVolumeClaim(object, options)
	case *networking.NetworkPolicy:
		options := networkingvalidation.NetworkPolicyValidationOptions{}
		faults = networkingvalidation.ValidateNetworkPolicy(object, options)
	case *networking.Ingress:
		faults = networkingvalidation.ValidateIngressCreate(object)
	case *policy.PodDisruptionBudget:
		options := policyvalidation.PodDisruptionBudgetValidationOptions{}
		faults = policyvalidation.ValidatePodDisruptionBudget(object, options)
	case *autoscaling.HorizontalPodAutoscaler:
		options := autoscalingvalidation.HorizontalPodAutoscalerSpecValidationOptions{}
		faults = autoscalingvalidation.ValidateHorizontalPodAutoscaler(object, options)
	default:
		return errors.New("nothing here validates it")
	}
	return faults.ToAggregate()
}

func restricted(template *core.PodTemplateSpec) error {
	var pod corev1.PodTemplateSpec
	if err := conversion.Convert_core_PodTemplateSpec_To_v1_PodTemplateSpec(template, &pod, nil); err != nil {
		return err
	}
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks())
	if err != nil {
		return err
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	var faults []error
	for _, result := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			faults = append(faults, fmt.Errorf("not restricted: %s: %s", result.ForbiddenReason, result.ForbiddenDetail))
		}
	}
	return errors.Join(faults...)
}
