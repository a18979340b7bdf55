/* What both libraries export, and by what a program knows them for a stand-in. */
#ifndef LIBRARY_H
#define LIBRARY_H

#define EXPORTED __attribute__((visibility("default")))

/* Where a role's work folder has the cards. */
#define CARDS_FILE "standin/cards"

/* The version of the stand-in. No library of a vendor has the name. */
EXPORTED extern const int orch_stand_in;

#endif
