; Drive to a place along roads; a tire may go flat on every road, and some places have a spare.
(define (domain tireworld)
  (:requirements :typing :probabilistic-effects)
  (:types place)
  (:predicates (at ?x - place) (road ?from ?to - place) (spare-in ?x - place) (flat) (spare))
  (:action move
    :parameters (?from ?to - place)
    :precondition (and (at ?from) (road ?from ?to) (not (flat)))
    :effect (and (at ?to) (not (at ?from)) (probabilistic 0.5 (flat))))
  (:action load
    :parameters (?x - place)
    :precondition (and (at ?x) (spare-in ?x))
    :effect (and (spare) (not (spare-in ?x))))
  (:action change
    :precondition (and (spare) (flat))
    :effect (and (not (spare)) (not (flat)))))
