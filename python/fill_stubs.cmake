# Puts the generated stubs of functions and methods into TEMPLATE.
file(READ ${TEMPLATE} text)
file(READ ${GENERATED}/functions.pyi functions)
file(READ ${GENERATED}/methods.pyi methods)
string(REPLACE "    @METHODS@\n" "${methods}" text "${text}")
string(REPLACE "@FUNCTIONS@\n" "${functions}" text "${text}")
file(WRITE ${OUTPUT} "${text}")
