export JAVA_HOME=/usr
A=\