// Package mlflow answers admission requests about MLflow. What is well-formed the schema says; here the author is held to what he may
// let the pods of the server use.
package mlflow
